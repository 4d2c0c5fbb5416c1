/**
 * The known name that a misspelt one means.
 */
import { fc, test } from "../../support/properties/property.ts";
import { describe, expect } from "vitest";
import { nearest } from "../../../worker/support/text/near-miss.ts";

const known = ["module", "env", "warm", "start", "network", "sandbox_profile", "timeout_seconds"];

describe("the known name that a misspelt one means", () => {
  test.each([
    ["sandbox_profle", "sandbox_profile"],
    ["netwrk", "network"],
    ["netowrk", "network"],
    ["evn", "env"],
    ["envs", "env"],
    ["warn", "warm"],
    ["sandboxProfile", "sandbox_profile"],
    ["timeout-second", "timeout_seconds"],
    ["MODULE", "module"],
  ])("of %s is %s", (misspelt, meant) => {
    expect(nearest(misspelt, known)).toBe(meant);
  });

  test.each(["timeout", "mode", "state", "e", "", "xyz", "description", "constructor"])(
    "is none for %j, which is too far from each",
    (other) => {
      expect(nearest(other, known)).toBeUndefined();
    },
  );

  test("is the one with the fewest edits, of equals the first", () => {
    expect(nearest("modulex", ["modules", "module"])).toBe("modules");
    expect(nearest("module", ["modulexx", "modulex"])).toBe("modulex");
  });

  test.prop([fc.constantFrom(...known), fc.nat(), fc.constantFrom("", "x", "_")])(
    "survives one wrong character anywhere",
    (name, seed, put) => {
      const index = seed % name.length;
      const misspelt = name.slice(0, index) + put + name.slice(index + 1);
      if (misspelt.replaceAll("_", "").length < 3) return;
      expect(nearest(misspelt, known)).toBe(name);
    },
  );
});
