/** Follows the references of a JSON Schema and merges what `allOf` joins. */
import type { JsonMembers, JsonValue } from "../../worker/console/api.ts";
import { isList, isMembers } from "../values/json.ts";

/** References and joins inside one another; more are taken for a circle. */
const maxSteps = 16;

/** The schema without `$ref` and `allOf`; undefined where that cannot be. */
export function flatten(
  schema: JsonValue,
  root: JsonMembers,
  steps = maxSteps,
): JsonMembers | undefined {
  if (schema === true) return {};
  if (!isMembers(schema) || steps === 0) return undefined;
  const { $ref: reference, allOf, ...rest } = schema;
  const parts = [
    ...(typeof reference === "string" ? [pointed(root, reference)] : []),
    ...(isList(allOf) ? allOf : []),
  ];
  let merged: JsonMembers = {};
  for (const part of parts) {
    const flat = part === undefined ? undefined : flatten(part, root, steps - 1);
    if (flat === undefined) return undefined;
    merged = merge(merged, flat);
  }
  return merge(merged, rest);
}

/** What a reference inside the document points to. */
function pointed(root: JsonMembers, reference: string): JsonValue | undefined {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let value: JsonValue | undefined = root;
  for (const part of reference.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isMembers(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** Both schemas at once; the second wins where only one can be. */
function merge(first: JsonMembers, second: JsonMembers): JsonMembers {
  const merged: Record<string, JsonValue> = { ...first, ...second };
  if (isMembers(first["properties"]) && isMembers(second["properties"])) {
    merged["properties"] = { ...first["properties"], ...second["properties"] };
  }
  if (isList(first["required"]) && isList(second["required"])) {
    merged["required"] = [...first["required"], ...second["required"]];
  }
  return merged;
}
