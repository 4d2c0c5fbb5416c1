/**
 * The profiles of the design document, and which of them a call runs under.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import {
  type LimitName,
  type Limits,
  limitNames,
} from "../../../worker/protocol/resource-limits.ts";
import {
  type ProfileChoice,
  type ProfileOverrides,
  chooseProfile,
  isWithin,
} from "../../../worker/sandbox/choose-profile.ts";
import {
  type Network,
  networkField,
  publicNetwork,
  toNetwork,
} from "../../../worker/protocol/network-rules.ts";
import { type Profile, builtInProfiles } from "../../../worker/sandbox/profile.ts";

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
      ["standard", 1024, 300, 2, 256, 512, publicNetwork],
      ["permissive", 4096, 600, 4, 1024, 1024, "host"],
    ]);
  });

  test("bound processes and memory file systems too, each wider one wider", () => {
    const processes = [...builtInProfiles.values()].map(({ limits }) => limits.processes);
    const tmpBytes = [...builtInProfiles.values()].map(({ limits }) => limits.tmpBytes);
    expect(processes).toEqual([32, 128, 512]);
    expect(tmpBytes).toEqual([64 * MiB, 256 * MiB, 1024 * MiB]);
  });

  test("let only the permissive one read /etc, have a /var and open terminals", () => {
    const wide = [...builtInProfiles.values()].filter(
      ({ readsEtc, hasVar, terminals }) => readsEtc || hasVar || terminals,
    );
    expect(wide).toEqual([builtInProfiles.get("permissive")]);
    expect(wide[0]).toMatchObject({ readsEtc: true, hasVar: true, terminals: true });
  });

  test("have sandboxes made ahead from templates, but for the tightest one", () => {
    const starts = [...builtInProfiles.values()].map(({ autoStart }) => autoStart);
    expect(starts).toEqual(["pool", "template", "template"]);
  });

  test("are known by the name they carry", () => {
    for (const [name, profile] of builtInProfiles) expect(profile.name).toBe(name);
  });
});

/**
 * Rows: the manifest's word; columns: the request's. Each cell is the profile under that worker
 * default.
 */
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

/** Public addresses of some names. */
const listed = toNetwork(networkField.parse({ allow: [".example.com"] }));

const none: ProfileOverrides = { limits: {}, network: undefined };

function named(name: string): Profile {
  return builtInProfiles.get(name)!;
}

/** A profile of the operator's own. */
function own(changes: Partial<Omit<Profile, "limits">>, limits: Partial<Limits> = {}): Profile {
  const base = named("standard");
  return { ...base, name: "own", ...changes, limits: { ...base.limits, ...limits } };
}

function chosen(choice: Partial<ProfileChoice>): Profile {
  return chooseProfile({
    manifest: undefined,
    overrides: none,
    requested: undefined,
    fallback: named("standard"),
    ...choice,
  });
}

describe("the profile of a call", () => {
  test.each(choices)(
    "with $fallback as the worker's default, $manifest in the manifest and $requested in the request is $expected",
    ({ manifest, requested, fallback, expected }) => {
      const profile = chooseProfile({
        manifest: manifest === undefined ? undefined : named(manifest),
        overrides: none,
        requested: requested === undefined ? undefined : named(requested),
        fallback: named(fallback),
      });
      expect(profile).toEqual(named(expected!));
    },
  );

  test("is that of a request that is tighter than the default in some members and wider in none", () => {
    for (const network of ["none", listed, publicNetwork] as const) {
      const tight = own({ network }, { memoryBytes: 128 * MiB });
      expect(chosen({ requested: tight })).toEqual(tight);
    }
  });

  test.each<[string, Profile]>([
    ["memory", own({ network: "none" }, { memoryBytes: 1025 * MiB })],
    ["files", own({}, { memoryBytes: MiB, files: 50_001 })],
    ["the network", own({ network: "host" }, { memoryBytes: MiB })],
    ["public addresses", own({ network: publicNetwork }, { memoryBytes: MiB })],
    ["/etc", own({ network: "none", readsEtc: true })],
    ["/var", own({ network: "none", hasVar: true })],
    ["terminals", own({ network: "none", terminals: true })],
    ["the backend", own({ network: "none", backend: "host" })],
    ["how sandboxes are made ahead", own({ network: "none", autoStart: "template" })],
    ["system calls", own({ network: "none", systemCalls: "usual" })],
  ])("is the default when what a request names is wider by %s, whatever else it is", (_, wide) => {
    const tight = { autoStart: "pool", systemCalls: "strict" } as const;
    const fallback = own({ name: "default", network: "none", ...tight });
    expect(chosen({ requested: wide, fallback })).toEqual(fallback);
  });

  test("is the operator's own where he names one that is not built in", () => {
    const fallback = own({ name: "default", readsEtc: true });
    expect(chosen({ fallback })).toEqual(fallback);
    expect(chosen({ fallback, requested: named("permissive") })).toEqual(fallback);
    expect(chosen({ fallback, requested: named("restrictive") })).toEqual(named("restrictive"));
    expect(chosen({ manifest: fallback, requested: named("standard") })).toEqual(fallback);
  });

  test("that a request tightens to restrictive has no member that is wider than what was granted", () => {
    const tiny = own({}, { memoryBytes: 64 * MiB, processes: 8, cpus: 8 });
    expect(chosen({ manifest: tiny, requested: named("restrictive") })).toEqual({
      ...named("restrictive"),
      limits: { ...named("restrictive").limits, memoryBytes: 64 * MiB, processes: 8 },
    });
  });

  test("that a request tightens has sandboxes made ahead as the tighter of the two has them", () => {
    const pooled = own({ autoStart: "pool", network: "none" });
    expect(chosen({ requested: named("restrictive") }).autoStart).toBe("pool");
    expect(chosen({ requested: pooled }).autoStart).toBe("pool");
    const templated = { ...named("restrictive"), autoStart: "template" } as const;
    expect(chosen({ manifest: pooled, requested: templated }).autoStart).toBe("pool");
  });
});

describe("what the manifest says of one tool", () => {
  const overrides: ProfileOverrides = {
    limits: { memoryBytes: 8192 * MiB, cpuSeconds: 10 },
    network: "none",
  };

  test("holds in place of its profile's members, under the profile's name", () => {
    const manifest = named("permissive");
    expect(chosen({ manifest, overrides, requested: named("standard") })).toEqual({
      ...manifest,
      network: "none",
      limits: { ...manifest.limits, memoryBytes: 8192 * MiB, cpuSeconds: 10 },
    });
  });

  test("holds on top of the worker's default too, which agents name in every request", () => {
    for (const requested of [undefined, named("standard"), named("permissive")]) {
      expect(chosen({ overrides, requested })).toMatchObject({
        name: "standard",
        network: "none",
        limits: { memoryBytes: 8192 * MiB, cpuSeconds: 10 },
      });
    }
  });

  test("can open the network of a profile that has none", () => {
    const wide: ProfileOverrides = { limits: {}, network: "host" };
    const manifest = named("restrictive");
    expect(chosen({ manifest, overrides: wide })).toEqual({ ...manifest, network: "host" });
    expect(chosen({ manifest, overrides: wide, requested: manifest })).toEqual(manifest);
  });

  const database = toNetwork(
    networkField.parse({ allow: [{ host: "db.internal", ports: [5432], private: true }] }),
  );

  test("is its list in place of a profile's public addresses", () => {
    const overrides: ProfileOverrides = { limits: {}, network: database };
    expect(chosen({ overrides }).network).toEqual(database);
    expect(chosen({ manifest: named("permissive"), overrides }).network).toEqual(database);
  });

  test("opens nothing that a profile's list lacks, neither by public addresses nor by host", () => {
    const manifest = own({ network: listed });
    const narrow = { limits: {}, network: publicNetwork };
    expect(chosen({ manifest, overrides: narrow }).network).toEqual(listed);
    const host = { limits: {}, network: "host" } as const;
    expect(chosen({ manifest, overrides: host }).network).toEqual(listed);
  });

  test("gives way to a request for public addresses where it has the host's network", () => {
    const requested = own({ name: "restrictive", network: publicNetwork });
    const overrides: ProfileOverrides = { limits: {}, network: "host" };
    expect(chosen({ overrides, requested }).network).toEqual(publicNetwork);
  });

  test("is never widened by a request, nor is what the request asks for by it", () => {
    const profile = named("restrictive");
    expect(chosen({ overrides, requested: profile })).toEqual({
      ...profile,
      limits: { ...profile.limits, cpuSeconds: 10 },
    });
  });

  test("makes nothing of this depend on how profiles are called", () => {
    const alias = { ...named("restrictive"), name: "my-own" };
    expect(chosen({ overrides, requested: alias }).limits.memoryBytes).toBe(512 * MiB);
    expect(isWithin(alias, named("restrictive"))).toBe(true);
  });
});

const networks: fc.Arbitrary<Network> = fc.oneof(
  fc.constantFrom<Network>("none", "host", publicNetwork, listed),
  fc
    .subarray(["a.example.com", ".example.com:80,22", "192.0.2.0/24"], { minLength: 1 })
    .map((allow) => toNetwork({ allow })),
  fc
    .subarray([80, 443, 22], { minLength: 1 })
    .map((ports) => toNetwork({ public: true, ports, allow: ["a.example.com:22"] })),
);
const bounds = fc.record(
  Object.fromEntries(
    limitNames.map((name) => [name, fc.integer({ min: 1, max: 4 })]),
  ) as unknown as Record<LimitName, fc.Arbitrary<number>>,
);
const profiles = fc.record<Profile>({
  name: fc.constantFrom("restrictive", "a", "b"),
  backend: fc.constantFrom("bubblewrap", "host"),
  network: networks,
  limits: bounds,
  readsEtc: fc.boolean(),
  hasVar: fc.boolean(),
  terminals: fc.boolean(),
  systemCalls: fc.constantFrom("strict", "usual"),
  autoStart: fc.constantFrom("pool", "template"),
});
const anyOverrides = fc.record<ProfileOverrides>({
  limits: fc.oneof(fc.constant({}), bounds),
  network: fc.option(networks, { nil: undefined }),
});

describe("the profile of any call", { tags: "promise-S21" }, () => {
  propertyTest.prop([fc.option(profiles, { nil: undefined }), anyOverrides, profiles, profiles])(
    "a request never widens, whatever profiles there are",
    (manifest, overrides, requested, fallback) => {
      const without = chooseProfile({ manifest, overrides, requested: undefined, fallback });
      const profile = chooseProfile({ manifest, overrides, requested, fallback });
      expect(isWithin(profile, without)).toBe(true);
      if (requested.name === "restrictive") expect(isWithin(profile, requested)).toBe(true);
    },
  );
});
