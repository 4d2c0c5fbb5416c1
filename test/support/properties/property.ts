/**
 * Properties as tests: fast-check's values in vitest's tests.
 *
 * fast-check's own package for vitest makes all chains of vitest's modifiers when it is imported,
 * which takes each test process 0.4 s and 46 MB.
 */
import * as fc from "fast-check";
import { test as vitestTest } from "vitest";

export { fc };

/** Vitest's `test`, and `test.prop([arbitrary, …], parameters)(title, property)`. */
export const test = Object.assign(vitestTest.extend({}), { prop });

type Values = [unknown, ...unknown[]];

/** A property of all values fails where it throws, rejects or is false, with the seed. */
function prop<Some extends Values>(
  arbitraries: { readonly [Index in keyof Some]: fc.Arbitrary<Some[Index]> },
  parameters?: fc.Parameters<Some>,
) {
  return (title: string, property: (...values: Some) => unknown): void => {
    vitestTest(title, async () => {
      const holds = async (...values: Some): Promise<boolean> =>
        (await property(...values)) !== false;
      await fc.assert(fc.asyncProperty(...arbitraries, holds), parameters);
    });
  };
}
