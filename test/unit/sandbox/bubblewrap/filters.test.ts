/**
 * Which filter a sandbox gets, by its profile and its command.
 */
import { describe, expect, test } from "vitest";
import { templateFilter, toolFilter } from "../../../../worker/sandbox/bubblewrap/filters.ts";
import {
  isFilteredArch,
  seccompProgram,
} from "../../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import { restrictiveProfile } from "../../../../worker/sandbox/profile.ts";

const usual = restrictiveProfile;
const strict = { ...usual, name: "mine", systemCalls: "strict" } as const;
const host = { seccomp: Uint8Array.of(1, 2, 255) };

describe("the filter of a tool", { tags: "promise-S40" }, () => {
  test("is the host's under the usual profiles, and none where it has none", () => {
    expect(toolFilter(host, usual)).toBe(host.seccomp);
    expect(toolFilter({ seccomp: undefined }, usual)).toBeUndefined();
  });

  test("is never left out under a strict one", () => {
    expect(() => toolFilter({ seccomp: undefined }, strict)).toThrow(
      "no system-call filter here, which the profile mine requires",
    );
  });

  test("passes one more filter only to a command that adds one", (context) => {
    const { arch } = process;
    if (!isFilteredArch(arch)) return context.skip("there is no filter for this architecture");
    const systemCalls = "strict";
    expect(toolFilter(host, strict)).toEqual(seccompProgram(arch, { systemCalls }));
    for (const addsFilter of [false, true]) {
      const program = seccompProgram(arch, { systemCalls, addsFilter });
      expect(toolFilter(host, strict, { addsFilter })).toEqual(program);
      const template = seccompProgram(arch, { use: "template", systemCalls, addsFilter });
      expect(templateFilter(strict, { addsFilter })).toEqual(template);
    }
  });
});
