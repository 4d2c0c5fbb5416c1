/**
 * The profiles of the design document, and which of them a call runs under.
 */
import { describe, expect, test } from "vitest";
import {
  type ProfileChoice,
  builtInProfiles,
  chooseProfileName,
} from "../../../worker/sandbox/profile.ts";

const MiB = 1024 * 1024;

describe("the built-in profiles", () => {
  test("have the limits of the design document's table", () => {
    const table = [...builtInProfiles].map(([name, { limits, network }]) => [
      name,
      limits.memoryBytes / MiB,
      limits.cpuSeconds,
      limits.cpus,
      limits.fileSizeBytes / MiB,
      limits.openFiles,
      network,
    ]);
    expect(table).toEqual([
      ["restrictive", 512, 60, 1, 64, 128, "none"],
      ["standard", 1024, 300, 2, 256, 512, "host"],
      ["permissive", 4096, 600, 4, 1024, 1024, "host"],
    ]);
  });

  test("bound processes and memory file systems too, each wider one wider", () => {
    const processes = [...builtInProfiles.values()].map(({ limits }) => limits.processes);
    const tmpBytes = [...builtInProfiles.values()].map(({ limits }) => limits.tmpBytes);
    expect(processes).toEqual([32, 128, 512]);
    expect(tmpBytes).toEqual([64 * MiB, 256 * MiB, 1024 * MiB]);
  });

  test("let only the permissive one read /etc and have a /var", () => {
    const wide = [...builtInProfiles.values()].filter(({ readsEtc, hasVar }) => readsEtc || hasVar);
    expect(wide).toEqual([builtInProfiles.get("permissive")]);
    expect(wide[0]).toMatchObject({ readsEtc: true, hasVar: true });
  });

  test("are known by the name they carry", () => {
    for (const [name, profile] of builtInProfiles) expect(profile.name).toBe(name);
  });
});

/** Rows: the manifest's word; columns: the request's. Each cell is the profile under that worker default. */
const requests = [undefined, "restrictive", "standard", "permissive"] as const;
const decisions: Readonly<Record<string, readonly (readonly [string | undefined, string[]])[]>> = {
  restrictive: [
    [undefined, ["restrictive", "restrictive", "restrictive", "restrictive"]],
    ["restrictive", ["restrictive", "restrictive", "restrictive", "restrictive"]],
    ["standard", ["standard", "restrictive", "standard", "standard"]],
    ["permissive", ["permissive", "restrictive", "permissive", "permissive"]],
  ],
  standard: [
    [undefined, ["standard", "restrictive", "standard", "standard"]],
    ["restrictive", ["restrictive", "restrictive", "restrictive", "restrictive"]],
    ["standard", ["standard", "restrictive", "standard", "standard"]],
    ["permissive", ["permissive", "restrictive", "permissive", "permissive"]],
  ],
  permissive: [
    [undefined, ["permissive", "restrictive", "standard", "permissive"]],
    ["restrictive", ["restrictive", "restrictive", "restrictive", "restrictive"]],
    ["standard", ["standard", "restrictive", "standard", "standard"]],
    ["permissive", ["permissive", "restrictive", "permissive", "permissive"]],
  ],
};

const choices = Object.entries(decisions).flatMap(([fallback, rows]) =>
  rows.flatMap(([manifest, cells]) =>
    requests.map((requested, column) => ({
      manifest,
      requested,
      fallback,
      expected: cells[column],
    })),
  ),
);

const width = (name: string): number => [...builtInProfiles.keys()].indexOf(name);

describe("the profile of a call", () => {
  test.each(choices)(
    "with $fallback as the worker's default, $manifest in the manifest and $requested in the request is $expected",
    ({ expected, ...choice }) => {
      expect(chooseProfileName(choice)).toBe(expected);
    },
  );

  test("is never wider for what a request says", () => {
    for (const { manifest, requested, fallback } of choices) {
      const without = chooseProfileName({ manifest, requested: undefined, fallback });
      const chosen = chooseProfileName({ manifest, requested, fallback });
      expect(width(chosen)).toBeLessThanOrEqual(width(without));
    }
  });

  test.each<ProfileChoice>([
    { manifest: undefined, requested: "unknown", fallback: "standard" },
    { manifest: undefined, requested: "", fallback: "permissive" },
  ])("is not one that nobody knows, because a request names it: %j", (choice) => {
    expect(chooseProfileName(choice)).toBe(choice.fallback);
  });

  test("is the operator's own where he names one that is not built in", () => {
    const own = { manifest: undefined, fallback: "own" };
    expect(chooseProfileName({ ...own, requested: undefined })).toBe("own");
    expect(chooseProfileName({ ...own, requested: "permissive" })).toBe("own");
    expect(chooseProfileName({ ...own, requested: "restrictive" })).toBe("restrictive");
    expect(
      chooseProfileName({ manifest: "own", requested: "standard", fallback: "standard" }),
    ).toBe("own");
  });
});
