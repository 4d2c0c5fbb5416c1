/**
 * Attacks run under profiles with low limits, and with nothing else changed.
 */
import { describe, expect, test } from "vitest";
import {
  attackLimits,
  attackable,
  attackableNames,
  lowered,
  loweredProfiles,
} from "../../../worker/doctor/attacks/attack-profile.ts";
import { limitNames } from "../../../worker/protocol/resource-limits.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { SandboxError } from "../../../worker/sandbox/sandbox.ts";

describe("a profile for attacks", () => {
  test.each([...builtInProfiles.values()])("of $name has no limit that harms a host", (profile) => {
    const { limits, ...rest } = lowered(profile);
    for (const name of limitNames) expect(limits[name]).toBeLessThanOrEqual(attackLimits[name]);
    expect({ ...rest, limits: profile.limits }).toEqual(profile);
  });

  test("keeps what is lower already", () => {
    const [profile] = builtInProfiles.values();
    const tight = { ...profile!, limits: { ...profile!.limits, processes: 4, files: 16 } };
    expect(lowered(tight).limits).toMatchObject({ processes: 4, files: 16 });
  });

  test("is there for every profile", () => {
    expect([...loweredProfiles(builtInProfiles).keys()]).toEqual([...builtInProfiles.keys()]);
  });
});

describe("what is attacked", () => {
  const bare = { ...builtInProfiles.get("standard")!, name: "bare", backend: "host" as const };
  const profiles = new Map([...builtInProfiles, ["bare", bare]]);

  test("is what has a sandbox, and it is found by its name", () => {
    expect(attackableNames(profiles)).toEqual(["restrictive", "standard", "permissive"]);
    expect(attackable(profiles, "standard")).toBe(builtInProfiles.get("standard"));
  });

  test.each([
    ["lenient", 'there is no profile "lenient"'],
    ["bare", 'the profile "bare" has no sandbox, so nothing is attacked in it'],
  ])("is not %s", (name, problem) => {
    expect(() => attackable(profiles, name)).toThrow(
      new SandboxError(`${problem}; to attack there are restrictive, standard, permissive`),
    );
  });
});
