/**
 * What is not as expected, in lines for people.
 */
import { isDeepStrictEqual } from "node:util";

/** Differences of one comparison that are told. */
const maxDifferences = 10;
/** Characters of a value in a line. */
const maxValueCharacters = 200;

/** How values are compared: `exact`, or members of objects that are not named do not count. */
export type Comparison = "exact" | "includes";

/** Differences between two values of JSON, each with its place: `result.rows[2].name: …`. */
export function differences(
  place: string,
  expected: unknown,
  found: unknown,
  comparison: Comparison,
): readonly string[] {
  return bounded([...compare(place, expected, found, comparison)]);
}

/** The first line in which two texts differ. */
export function textDifference(place: string, expected: string, found: string): readonly string[] {
  if (expected === found) return [];
  const [wanted, got] = [expected.split("\n"), found.split("\n")];
  const at = wanted.findIndex((line, index) => line !== got[index]);
  const index = at === -1 ? wanted.length : at;
  return [differs(`${place}, line ${index + 1}`, wanted[index], got[index])];
}

/** One difference. */
export function differs(place: string, expected: unknown, found: unknown): string {
  return `${place}: expected ${shown(expected)}, found ${shown(found)}`;
}

function* compare(
  place: string,
  expected: unknown,
  found: unknown,
  comparison: Comparison,
): Generator<string> {
  if (isDeepStrictEqual(expected, found)) return;
  if (Array.isArray(expected) && Array.isArray(found) && expected.length === found.length) {
    for (const [index, each] of expected.entries())
      yield* compare(`${place}[${index}]`, each, found[index], comparison);
    return;
  }
  if (!isMap(expected) || !isMap(found)) {
    yield differs(place, expected, found);
    return;
  }
  const names = new Set(Object.keys(expected));
  if (comparison === "exact") for (const name of Object.keys(found)) names.add(name);
  for (const name of names) {
    const of = (map: Record<string, unknown>): unknown =>
      Object.hasOwn(map, name) ? map[name] : undefined;
    yield* compare(`${place}.${name}`, of(expected), of(found), comparison);
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > maxValueCharacters ? `${text.slice(0, maxValueCharacters)}…` : text;
}

function bounded(lines: readonly string[]): readonly string[] {
  if (lines.length <= maxDifferences) return lines;
  return [...lines.slice(0, maxDifferences), `and ${lines.length - maxDifferences} more`];
}
