/**
 * Attacks run under profiles with low limits, and with nothing else changed.
 */
import { describe, expect, test } from "vitest";
import { attackLimits, lowered, loweredProfiles } from "../../../worker/doctor/attack-profile.ts";
import { limitNames } from "../../../worker/protocol/resource-limits.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";

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
