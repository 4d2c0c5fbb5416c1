/**
 * What a template is told and started with, against what every other sandbox is.
 */
import { describe, expect, test } from "vitest";
import { bwrapOptions } from "../../../../worker/sandbox/bubblewrap/argv.ts";
import type { HostFacts } from "../../../../worker/sandbox/bubblewrap/probe/probe.ts";
import { seccompProgram } from "../../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import {
  inspectedCalls,
  refusedCalls,
  unfitCalls,
  unknownCalls,
} from "../../../../worker/sandbox/syscalls/syscalls.ts";
import { templateSettings } from "../../../../worker/sandbox/bubblewrap/template/template-settings.ts";
import { builtInProfiles } from "../../../../worker/sandbox/profile.ts";
import { limitPrefix, parseHardLimits, rlimitsFor } from "../../../../worker/sandbox/rlimits.ts";
import { BpfProgram } from "./bpf-interpreter.ts";

const auditArchs = { x64: 0xc000_003e, arm64: 0xc000_00b7 };
const archs = ["x64", "arm64"] as const;
const allowed = 0x7fff_0000;
const profile = builtInProfiles.get("permissive")!;
const unlimited = parseHardLimits("");
const request = { profile, memoryBound: "address-space" } as const;
const host = {
  proc: "fresh",
  seccomp: Uint8Array.of(1, 2, 255),
  hardLimits: unlimited,
} as Partial<HostFacts> as HostFacts;

describe.each(archs)("the filter of a template on %s", (arch) => {
  const [usual, wider] = (["tool", "template"] as const).map(
    (use) => new BpfProgram(seccompProgram(arch, { use })),
  );
  const asked = (program: BpfProgram | undefined, number: number, ...args: number[]) =>
    program!.run({ arch: auditArchs[arch], number, arguments: args.map(BigInt) });

  test("allows of all that is refused only what makes a sandbox", () => {
    const calls = { ...refusedCalls, ...unknownCalls, ...unfitCalls, ...inspectedCalls };
    const wide = Object.entries(calls).filter(([, { [arch]: number }]) => {
      if (number === undefined) return false;
      return asked(usual, number) !== allowed && asked(wider, number) === allowed;
    });
    expect(wide.map(([name]) => name).toSorted()).toEqual([
      "mount",
      "sched_setaffinity",
      "unshare",
    ]);
  });

  test("allows a process in new namespaces, and no thread with descriptors of its own", () => {
    const clone = inspectedCalls.clone[arch]!;
    const inNamespaces = 0x7c02_0011;
    expect(asked(usual, clone, inNamespaces)).not.toBe(allowed);
    expect(asked(wider, clone, inNamespaces)).toBe(allowed);
    expect(asked(wider, clone, 0x0001_0000)).not.toBe(allowed);
  });
});

describe("the sandbox of a template", () => {
  const options = {
    ...{ profile, proc: "fresh" as const, limitsNested: true, namesHost: true },
    ...{ systemDirectories: [], workDir: "/work/own", mounts: [], devices: [] },
    environment: new Map<string, string>(),
  };

  test("is as every other, but that it can make namespaces, write to /proc and see its own directory", () => {
    const usual = bwrapOptions(options);
    const own = bwrapOptions({ ...options, templateDir: "/work/template" });
    const more = ["--bind", "/work/template", "/sandbox/template"];
    expect(own.filter((option) => !more.slice(1).includes(option)).length).toBe(
      usual.length - ["--disable-userns", "--remount-ro", "/proc"].length + 1,
    );
    expect(own.join(" ")).toContain(more.join(" "));
    expect(usual).toContain("--disable-userns");
    expect(own).not.toContain("--disable-userns");
    expect(usual.join(" ")).toContain("--remount-ro /proc");
    expect(own.join(" ")).not.toContain("--remount-ro /proc");
    expect(own.slice(-2)).toEqual(["--remount-ro", "/"]);
  });

  test("has limits that it can lift again", () => {
    const prefix = limitPrefix(profile.limits, "address-space", unlimited, "soft");
    expect(prefix).toContain(`--as=${profile.limits.memoryBytes}:`);
    expect(prefix.filter((option) => /^--\w+=\d+:\d/.test(option))).toEqual([]);
  });
});

describe("what a template is told", () => {
  test("is the filter, the limits and the memory file systems of its children", () => {
    const { limits } = profile;
    const said = JSON.parse(templateSettings(request, limits, host)) as Record<string, unknown>;
    const place = `mode=0755,size=${limits.tmpBytes},nr_inodes=${limits.files + 1000}`;
    expect(said).toMatchObject({
      network: true,
      terminals: true,
      gateway: false,
      tmpfs: { "/tmp": place, "/dev/shm": place, "/var": place },
      filter: "0102ff",
    });
    const names = rlimitsFor(limits, "address-space", unlimited).map(({ name }) =>
      name.toUpperCase(),
    );
    expect(Object.keys(said["limits"] as object)).toEqual(names);
    expect(said["limits"]).toMatchObject({
      AS: [limits.memoryBytes, limits.memoryBytes],
      CPU: [limits.cpuSeconds, limits.cpuSeconds + 1],
    });
  });

  test("is whether its children have a gateway", () => {
    const settings = templateSettings({ ...request, hasGateway: true }, profile.limits, host);
    expect(JSON.parse(settings)).toMatchObject({ gateway: true });
  });

  test.each([
    ["a filter", { seccomp: undefined }],
    ["a /proc of their own", { proc: "empty" as const }],
  ])("is nothing where its children would lack %s; then a pool has to do", (_what, lacking) => {
    expect(() => templateSettings(request, profile.limits, { ...host, ...lacking })).toThrow(
      expect.objectContaining({ name: "SandboxError", isUnfit: true }),
    );
  });
});
