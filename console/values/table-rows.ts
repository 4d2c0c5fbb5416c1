/** Finds what of a value can be read as a table. */
import type { JsonMembers, JsonValue } from "../../worker/console/api.ts";
import { isList, isMembers } from "./json.ts";

export interface Grid {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (JsonValue | undefined)[])[];
  /** Rows that are not shown. */
  readonly more: number;
}

export const maxRows = 200;
const maxColumns = 30;

/** A list of objects as a table; undefined for other values. */
export function gridOf(value: JsonValue): Grid | undefined {
  if (!isList(value) || value.length === 0 || !value.every(isMembers)) return undefined;
  const shown = value.slice(0, maxRows);
  const columns = [...new Set(shown.flatMap((row) => Object.keys(row)))].slice(0, maxColumns);
  if (columns.length === 0) return undefined;
  const cell = (row: JsonMembers, name: string): JsonValue | undefined =>
    Object.hasOwn(row, name) ? row[name] : undefined;
  return {
    columns,
    rows: shown.map((row) => columns.map((name) => cell(row, name))),
    more: value.length - shown.length,
  };
}

/** The tables in a result: itself, or its members, each with its name. */
export function gridsOf(
  value: JsonValue,
): readonly { readonly name: string | null; readonly grid: Grid }[] {
  const own = gridOf(value);
  if (own !== undefined) return [{ name: null, grid: own }];
  if (!isMembers(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const grid = gridOf(member);
    return grid === undefined ? [] : [{ name, grid }];
  });
}

/** A value in a cell: texts as they are, others as JSON, at most `maxLength` characters. */
export function cellText(value: JsonValue | undefined, maxLength = 200): string {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}
