/**
 * Which sandboxes can stand for each other.
 */
import { defaultGatewayLimits } from "../../../worker/protocol/tool-calls/limits.ts";
import { describe, expect, test } from "vitest";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { limitNames } from "../../../worker/protocol/resource-limits.ts";
import { builtInProfiles, restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { entryKey, profileKey } from "../../../worker/pool/keys.ts";
import { packages, tool } from "../manifest/fixtures.ts";

describe("a sandbox that waits for calls of a tool", () => {
  test("may take them when the same entry was read again", () => {
    expect(entryKey(tool("a"))).toBe(entryKey(tool("a")));
    const turned = Object.fromEntries(Object.entries(tool("a")).reverse()) as unknown as ToolEntry;
    expect(entryKey(turned)).toBe(entryKey(tool("a")));
  });

  const irrelevant: Partial<ToolEntry>[] = [
    { description: "another" },
    { timeoutSeconds: 5 },
    { idempotent: false },
    { warm: { min: 1, max: 2 } },
    // What a profile decides is in the profile's key.
    { profile: "restrictive" },
    { limits: { cpus: 2 } },
    { network: "none" },
  ];
  test.for(irrelevant)("may take them under the entry with %j", (change) => {
    expect(entryKey(tool("a", change))).toBe(entryKey(tool("a")));
  });

  const relevant: Partial<ToolEntry>[] = [
    { name: "b" },
    { runtime: "node" },
    { module: "other" },
    { callable: { kind: "function", name: "other" } },
    { callable: { kind: "class", name: "run" } },
    { packages: packages("numpy") },
    { isolate: true },
    { mounts: [{ source: "/a", target: "/b" }] },
    { devices: ["/dev/kvm"] },
    { env: ["TOKEN"] },
    { start: "pool" },
    {
      gateway: { tools: ["other"], remote: [], limits: defaultGatewayLimits, isIdempotent: false },
    },
  ];
  test.for(relevant)("is of no use under the entry with %j", (change) => {
    expect(entryKey(tool("a", change))).not.toBe(entryKey(tool("a")));
  });
});

describe("a sandbox of a profile", () => {
  test("may take calls of one that says the same in another order", () => {
    const { limits, ...rest } = restrictiveProfile;
    const turned = Object.fromEntries(Object.entries(limits).reverse()) as unknown as typeof limits;
    expect(profileKey({ limits: turned, ...rest })).toBe(profileKey(restrictiveProfile));
  });

  test("is of no use under one of the others", () => {
    const keys = [...builtInProfiles.values()].map(profileKey);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test.for(limitNames)("is of no use where %s is another", (name) => {
    const limits = { ...restrictiveProfile.limits, [name]: 7 };
    expect(profileKey({ ...restrictiveProfile, limits })).not.toBe(profileKey(restrictiveProfile));
  });

  const words = [
    { network: "host" },
    { readsEtc: true },
    { hasVar: true },
    { terminals: true },
    { systemCalls: "strict" },
    { backend: "host" },
    { autoStart: "template" },
  ] as const;
  test.for(words)("is of no use where there is %j", (change) => {
    expect(profileKey({ ...restrictiveProfile, ...change })).not.toBe(
      profileKey(restrictiveProfile),
    );
  });
});
