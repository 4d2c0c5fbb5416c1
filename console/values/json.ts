/** Tells the kinds of JSON values apart. */
import type { JsonMembers, JsonValue } from "../../worker/console/api.ts";

export function isMembers(value: JsonValue | undefined): value is JsonMembers {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** Whether two values are the same, whatever the order of their members. */
export function isSame(one: JsonValue | undefined, other: JsonValue | undefined): boolean {
  if (isList(one) && isList(other)) {
    return one.length === other.length && one.every((item, at) => isSame(item, other[at]));
  }
  if (!isMembers(one) || !isMembers(other)) return one === other;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}
