/** Reads the arguments out of a filled form. */
import type { JsonValue } from "../../worker/console/api.ts";
import type { Draft } from "./draft.ts";
import type { Field, NumberField } from "./field.ts";

export interface Problem {
  /** Names and places from the outside in. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/**
 * The value of a draft; undefined if it is not given. Adds what is wrong to `problems`; the browser
 * checks lengths, patterns and bounds.
 */
export function readDraft(
  field: Field,
  draft: Draft,
  isRequired: boolean,
  path: readonly (string | number)[],
  problems: Problem[],
): JsonValue | undefined {
  const report = (message: string): undefined => {
    problems.push({ path, message });
    return undefined;
  };
  const missing = (): JsonValue | undefined => {
    if (field.isNullable && (isRequired || (field.initial ?? null) !== null)) return null;
    return isRequired ? report("is required") : undefined;
  };
  switch (draft.kind) {
    case "absent":
      return missing();
    case "text":
      if (draft.text === "") return missing();
      if (field.kind === "number") return readNumber(field, draft.text, report);
      return field.kind === "json" ? readJson(draft.text, report) : draft.text;
    case "flag":
      return draft.isOn ?? missing();
    case "choice": {
      const option = field.kind === "choice" ? field.options[draft.index] : undefined;
      return option === undefined ? missing() : option.value;
    }
    case "object": {
      if (field.kind !== "object") return undefined;
      const entries = field.members.flatMap((member) => {
        const { name } = member;
        const one = draft.members[name] ?? { kind: "absent" };
        const value = readDraft(member.field(), one, member.isRequired, [...path, name], problems);
        return value === undefined ? [] : [[name, value] as const];
      });
      return Object.fromEntries(entries);
    }
    case "list": {
      if (field.kind !== "list") return undefined;
      const { minItems, maxItems } = field;
      if (draft.items.length < minItems) report(`needs at least ${minItems} items`);
      if (maxItems !== null && draft.items.length > maxItems) report(`takes at most ${maxItems}`);
      return draft.items.flatMap(({ draft: item }, at) => {
        const value = readDraft(field.item(), item, true, [...path, at], problems);
        return value === undefined ? [] : [value];
      });
    }
    case "variant": {
      const variant = field.kind === "variant" ? field.variants[draft.index] : undefined;
      if (variant === undefined) return missing();
      return readDraft(variant.field(), draft.draft, true, path, problems);
    }
  }
}

/** A path as in `rows[2].name`. */
export function pathText(path: readonly (string | number)[]): string {
  return path
    .map((part, at) => (typeof part === "number" ? `[${part}]` : at === 0 ? part : `.${part}`))
    .join("");
}

function readNumber(
  field: NumberField,
  text: string,
  report: (message: string) => undefined,
): number | undefined {
  const value = Number(text);
  const { exclusiveMinimum, exclusiveMaximum } = field;
  if (!Number.isFinite(value)) return report("is not a number");
  if (field.isInteger && !Number.isInteger(value)) return report("is not a whole number");
  if (field.isInteger && !Number.isSafeInteger(value)) {
    return report("is too large to be exact in a browser");
  }
  if (exclusiveMinimum !== null && value <= exclusiveMinimum) {
    return report(`must be more than ${exclusiveMinimum}`);
  }
  if (exclusiveMaximum !== null && value >= exclusiveMaximum) {
    return report(`must be less than ${exclusiveMaximum}`);
  }
  return value;
}

function readJson(text: string, report: (message: string) => undefined): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    return report(`is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
