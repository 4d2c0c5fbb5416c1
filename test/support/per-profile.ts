/**
 * A test for each built-in profile: always under the one that gives tools most, under the others
 * with the tag `full`.
 */
import { type TestContext, describe, test } from "vitest";
import { builtInProfiles } from "../../worker/sandbox/profile.ts";

const widest = "permissive";
const others = [...builtInProfiles.keys()].filter((name) => name !== widest);

/** @param name with `%s` for the profile */
export function testPerProfile(
  name: string,
  run: (profile: string, context: TestContext) => Promise<void>,
): void {
  test.for([widest])(name, run);
  test.for(others)(name, { tags: "full" }, run);
}

/** @param name with `%s` for the profile */
export function describePerProfile(name: string, run: (profile: string) => void): void {
  describe.for([widest])(name, run);
  describe.for(others)(name, { tags: "full" }, run);
}
