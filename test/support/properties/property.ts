/**
 * Properties as tests: fast-check's values in vitest's tests.
 *
 * fast-check's own package for vitest makes all chains of vitest's modifiers when it is imported,
 * which takes each test process 0.4 s and 46 MB.
 */
import * as fc from "fast-check";
import { test as vitestTest } from "vitest";

export { fc };

const surrogates = { first: 0xd800, count: 0x800 };

/**
 * A character of any code point, which is `unit: "binary"` of fast-check's strings. That makes a
 * map of all 1,112,064 code points: 0.8 s and 135 MB in each test process.
 */
export const anyCharacter = fc
  .nat(0x10ffff - surrogates.count)
  .map(
    (place) => String.fromCodePoint(place < surrogates.first ? place : place + surrogates.count),
    placeOf,
  );

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

/** Throws where a value is not one character, as an unmapper of fast-check has to. */
function placeOf(character: unknown): number {
  const codePoint = typeof character === "string" ? character.codePointAt(0) : undefined;
  if (codePoint === undefined || String.fromCodePoint(codePoint) !== character)
    throw new TypeError("not a character");
  if (codePoint < surrogates.first) return codePoint;
  if (codePoint < surrogates.first + surrogates.count) throw new TypeError("half a character");
  return codePoint - surrogates.count;
}
