/**
 * What children of a template draw from generators of random numbers, for tests.
 */

/** What was drawn at a time, by generator. */
export type Draw = Readonly<Record<string, unknown>>;

/** What a child tells of its template's import and of itself. */
export interface Draws {
  readonly imported: Draw;
  readonly drawn: Draw;
}

/** Values that were drawn more than once, by generator. */
export function alike(draws: readonly Draw[]): Record<string, readonly string[]> {
  const names = Object.keys(draws[0]!);
  const twice = names.map((name) => {
    const values = draws.map((draw) => JSON.stringify(draw[name]));
    return [name, values.filter((value, index) => values.indexOf(value) !== index)] as const;
  });
  return Object.fromEntries(twice.filter(([, values]) => values.length > 0));
}
