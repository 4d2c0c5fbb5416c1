/** The drafts of a form, from defaults or given values. */
import type { JsonValue } from "../../worker/console/api.ts";
import { isList, isMembers, isSame } from "../values/json.ts";
import type { Field, ListField, ObjectField, VariantField } from "./field.ts";
import { readDraft } from "./read-draft.ts";
import type { Draft, ListItem } from "./draft.ts";

/** Required members inside one another; deeper ones are left out. */
const maxDepth = 12;

/** The draft of a field with a value, or with its default. */
export function startDraft(field: Field, isRequired: boolean, given?: JsonValue, depth = 0): Draft {
  const value = given ?? field.initial;
  switch (field.kind) {
    case "text":
      return { kind: "text", text: typeof value === "string" ? value : "" };
    case "number":
      return { kind: "text", text: typeof value === "number" ? String(value) : "" };
    case "boolean":
      return { kind: "flag", isOn: typeof value === "boolean" ? value : flagWithout(isRequired) };
    case "choice":
      return { kind: "choice", index: chosen(field.options, value, isRequired) };
    case "json":
      return { kind: "text", text: value === undefined || value === null ? "" : pretty(value) };
    default: {
      const isGiven = value !== undefined && value !== null;
      if (depth >= maxDepth || (!isGiven && !isRequired)) return { kind: "absent" };
      return startGroup(field, isGiven ? value : undefined, depth);
    }
  }
}

/** The draft of a new item of a list. */
export function startItem(field: ListField, key: number): ListItem {
  return { key, draft: startDraft(field.item(), true) };
}

/** The draft of a variant that was chosen. */
export function startVariant(field: VariantField, index: number): Draft {
  const variant = field.variants[index]?.field();
  const draft = variant === undefined ? absent : startDraft(variant, true);
  return { kind: "variant", index, draft };
}

export const absent: Draft = { kind: "absent" };

function startGroup(
  field: ObjectField | ListField | VariantField,
  value: JsonValue | undefined,
  depth: number,
): Draft {
  if (field.kind === "object") {
    const given = isMembers(value) ? value : {};
    const members = field.members.map(({ name, isRequired, field: member }) => {
      const one = Object.hasOwn(given, name) ? given[name] : undefined;
      return [name, startDraft(member(), isRequired, one, depth + 1)] as const;
    });
    return { kind: "object", members: Object.fromEntries(members) };
  }
  if (field.kind === "list") {
    const given = isList(value) ? value : [];
    const count = Math.max(given.length, field.minItems);
    const items = Array.from({ length: count }, (_, key) => ({
      key,
      draft: startDraft(field.item(), true, given[key], depth + 1),
    }));
    return { kind: "list", items };
  }
  return startFittingVariant(field, value, depth);
}

/** The first variant that gives back the value; without a value the first. */
function startFittingVariant(
  field: VariantField,
  value: JsonValue | undefined,
  depth: number,
): Draft {
  const drafts = field.variants.map(({ field: variant }) => {
    const one = variant();
    return { field: one, draft: startDraft(one, true, value, depth + 1) };
  });
  const fitting = drafts.findIndex(
    (one) => value === undefined || isSame(readDraft(one.field, one.draft, true, [], []), value),
  );
  const index = Math.max(fitting, 0);
  return { kind: "variant", index, draft: drafts[index]?.draft ?? absent };
}

function chosen(
  options: readonly { readonly value: JsonValue }[],
  value: JsonValue | undefined,
  isRequired: boolean,
): number {
  if (value === undefined) return isRequired && options.length === 1 ? 0 : -1;
  return options.findIndex((option) => isSame(option.value, value));
}

/** A checkbox has no third state. */
function flagWithout(isRequired: boolean): boolean | null {
  return isRequired ? false : null;
}

function pretty(value: JsonValue): string {
  return JSON.stringify(value, null, 2);
}
