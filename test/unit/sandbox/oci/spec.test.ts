/**
 * The configuration of OCI containers.
 */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { ociSeccomp } from "../../../../worker/sandbox/oci/seccomp.ts";
import { type SpecOptions, commandOf, ociSpec } from "../../../../worker/sandbox/oci/spec.ts";
import { builtInProfiles, restrictiveProfile } from "../../../../worker/sandbox/profile.ts";
import { refusedCalls } from "../../../../worker/sandbox/syscalls/syscalls.ts";

const options: SpecOptions = {
  profile: restrictiveProfile,
  root: "/work/bundle/root",
  argv: ["/usr/bin/true"],
  userId: 60_001,
  rlimits: [
    { name: "nofile", soft: 128, hard: 128 },
    { name: "cpu", soft: 60, hard: 61 },
    { name: "nproc", soft: Infinity, hard: Infinity },
  ],
  workDir: "/work/call",
  systemPaths: ["/etc/ld.so.cache"],
  mounts: [{ source: "/srv/tools", target: "/tools/python" }],
  writable: [{ source: "/srv/state", target: "/state" }],
  resources: { memoryBytes: 2 ** 29, processes: 33, cpus: [1, 3] },
  seccomp: undefined,
};

describe("the configuration of a container", () => {
  test("is as it was read and approved", async () => {
    const golden = await readFile(new URL("spec.golden.json", import.meta.url), "utf8");
    expect(ociSpec(options)).toEqual(JSON.parse(golden));
  });

  test("grants no capability, whatever the profile", () => {
    for (const profile of builtInProfiles.values()) {
      const { process } = ociSpec({ ...options, profile }) as unknown as {
        process: { capabilities: Record<string, string[]>; noNewPrivileges: boolean };
      };
      expect(Object.values(process.capabilities).flat()).toEqual([]);
      expect(process.noNewPrivileges).toBe(true);
    }
  });

  test("takes a path as it is, also one that looks like options", () => {
    const source = '/srv/a,rw,exec:b\n"c';
    const { mounts } = ociSpec({ ...options, mounts: [{ source, target: "/tools/x,rw" }] });
    expect(mounts.find((mount) => mount.source === source)).toEqual({
      destination: "/tools/x,rw",
      type: "bind",
      source,
      options: ["rbind", "ro", "nosuid", "nodev"],
    });
  });

  test("has only the work directory and what is asked for writable", () => {
    const writable = ociSpec(options).mounts.filter(({ options: all }) => all.includes("rw"));
    expect(writable.map(({ destination }) => destination)).toEqual(["/state", "/sandbox/work"]);
  });

  test("bounds each tmpfs by the profile", () => {
    const profile = builtInProfiles.get("permissive")!;
    const tmpfs = ociSpec({ ...options, profile }).mounts.filter(({ type }) => type === "tmpfs");
    for (const mount of tmpfs.filter(({ destination }) => destination !== "/dev"))
      expect(mount.options).toContain(`size=${profile.limits.tmpBytes}`);
    expect(tmpfs.map(({ destination }) => destination)).toContain("/var");
  });

  test("has neither groups nor a filter where the runtime has a kernel of its own", () => {
    const { linux } = ociSpec({ ...options, resources: undefined });
    expect(linux).not.toHaveProperty("resources");
    expect(linux).not.toHaveProperty("seccomp");
  });
});

describe("the command line of a container", () => {
  test("hands hostile values on as words, not to a shell", () => {
    const environment = new Map([["A", "$(touch /x); 'q' \"w\"\n"]]);
    const argv = commandOf(["/usr/bin/printf", "$HOME; exit"], environment, {
      ...{ hasStdin: false, hasInit: true },
    });
    expect(argv.slice(3)).toEqual([
      ...["sh", "/usr/bin/env", "-i", "A=$(touch /x); 'q' \"w\"\n"],
      ...["/usr/bin/printf", "$HOME; exit"],
    ]);
    expect(argv[2]).not.toContain("touch");
  });

  test("reads nothing unless it is asked to", () => {
    const script = (hasStdin: boolean) =>
      commandOf(["/usr/bin/cat"], new Map(), { hasStdin, hasInit: false })[2];
    expect(script(false)).toBe('exec "$@" </dev/null');
    expect(script(true)).toBe('exec "$@"');
  });
});

describe("the filter of system calls", () => {
  test("refuses every call that bubblewrap's refuses, and has none on other processors", () => {
    const { syscalls } = ociSeccomp("x64") as { syscalls: { names: string[]; args?: object[] }[] };
    const refused = syscalls.filter(({ args }) => args === undefined).flatMap(({ names }) => names);
    for (const name of Object.keys(refusedCalls)) expect(refused).toContain(name);
    expect(ociSeccomp("ia32")).toBeUndefined();
  });

  test("has one condition for an argument in each rule: runtimes split others into alternatives", () => {
    const { syscalls } = ociSeccomp("x64") as { syscalls: { args?: { index: number }[] }[] };
    for (const { args = [] } of syscalls)
      expect(new Set(args.map(({ index }) => index)).size).toBe(args.length);
  });
});
