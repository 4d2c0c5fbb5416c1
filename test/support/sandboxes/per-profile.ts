/**
 * A test for each built-in profile: always under the one that gives tools most, under the others
 * with the tag `full`.
 */
import { type TestContext, describe, test } from "vitest";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";

const widest = "permissive";
const others = [...builtInProfiles.keys()].filter((name) => name !== widest);

type Run = (profile: string, context: TestContext) => Promise<void>;

interface Options {
  readonly tags: string | readonly string[];
}

/** @param name with `%s` for the profile */
export function testPerProfile(name: string, run: Run): void;
export function testPerProfile(name: string, options: Options, run: Run): void;
export function testPerProfile(name: string, ...rest: [Run] | [Options, Run]): void {
  const [options, run] = rest.length === 1 ? [{ tags: [] }, rest[0]] : rest;
  const tags = [options.tags].flat();
  test.for([widest])(name, { tags }, run);
  test.for(others)(name, { tags: ["full", ...tags] }, run);
}

/** @param name with `%s` for the profile */
export function describePerProfile(name: string, run: (profile: string) => void): void {
  describe.for([widest])(name, run);
  describe.for(others)(name, { tags: "full" }, run);
}
