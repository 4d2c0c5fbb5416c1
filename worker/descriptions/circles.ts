/**
 * Definitions that lead back to themselves without a step into the value, such as
 * `{"$ref": "#/$defs/A"}` as the definition of A: a validator would never end.
 */
import { type Json, type JsonObject, isJsonObject } from "../support/json/json.ts";

/** Keywords whose schemas apply to the same value. */
const inPlaceLists = ["anyOf", "allOf", "oneOf"];
const inPlaceSchemas = ["not", "if", "then", "else"];

/** The schema with such definitions open, its root among them. */
export function openCircles(schema: JsonObject): JsonObject {
  const { $defs: definitions } = schema;
  const nodes = new Map<string, Json>([["#", schema]]);
  if (definitions !== undefined && isJsonObject(definitions)) {
    for (const [name, each] of Object.entries(definitions)) nodes.set(`#/$defs/${name}`, each);
  }
  const edges = new Map(Array.from(nodes, ([name, node]) => [name, inPlace(node)] as const));
  const circles = new Set([...nodes.keys()].filter((name) => reaches(name, name, edges)));
  if (circles.has("#")) return { type: "object" };
  if (circles.size === 0) return schema;
  const open = Object.entries(definitions as JsonObject).map(([name, each]) => {
    return [name, circles.has(`#/$defs/${name}`) ? {} : each] as const;
  });
  return { ...schema, $defs: Object.fromEntries(open) };
}

/** References that apply to the same value. */
function inPlace(schema: Json): readonly string[] {
  if (!isJsonObject(schema)) return [];
  const { $ref: reference } = schema;
  const lists = inPlaceLists.flatMap((name) => schema[name] ?? []) as readonly Json[];
  const nested = [...lists, ...inPlaceSchemas.flatMap((name) => schema[name] ?? [])];
  return [...(typeof reference === "string" ? [reference] : []), ...nested.flatMap(inPlace)];
}

function reaches(
  from: string,
  target: string,
  edges: ReadonlyMap<string, readonly string[]>,
): boolean {
  const seen = new Set<string>();
  const next = [...(edges.get(from) ?? [])];
  for (let name = next.pop(); name !== undefined; name = next.pop()) {
    if (name === target) return true;
    if (seen.has(name)) continue;
    seen.add(name);
    next.push(...(edges.get(name) ?? []));
  }
  return false;
}
