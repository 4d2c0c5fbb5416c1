/**
 * What follows from trial sandboxes for each check, and which minimum it meets.
 */
import { describe, expect, test } from "vitest";
import type { TrialObservation } from "../../../../worker/sandbox/bubblewrap/probe/probe-script.ts";
import { type Evidence, judge } from "../../../../worker/sandbox/bubblewrap/probe/probes.ts";
import type { Cgroups } from "../../../../worker/sandbox/cgroup/cgroup.ts";
import {
  type CheckName,
  type HostCheck,
  backendCheckNames,
  checkNames,
  defaultMinimum,
  describeChecks,
  unmetChecks,
} from "../../../../worker/sandbox/host-check.ts";
import { settings, observation, workerNetwork } from "./trial-observation.ts";

const open = { profile: "standard", network: "host", networkNamespace: undefined } as const;

function cgroups(controls: Partial<Cgroups["controls"]> = {}): NonNullable<Evidence["cgroups"]> {
  return {
    cgroups: {
      description: "cgroup v2",
      version: 2,
      controls: { memory: true, processes: true, cpu: true, ...controls },
      joinMs: 0.1,
      discard: () => undefined,
      create: () => Promise.reject(new Error("not here")),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    },
    reason: undefined,
    remedy: undefined,
    remark: undefined,
  };
}

function evidence(changes: Partial<Evidence> = {}): Evidence {
  return {
    refusals: {},
    observations: [observation(), observation(open)],
    nestedWithoutFilter: "unshare: unshare failed: No space left on device",
    workerFilters: 0,
    workerNetwork,
    arch: "x64",
    isFilteredArch: true,
    cgroups: cgroups(),
    settings: settings(),
    ...changes,
  };
}

function checkOf(name: CheckName, changes: Partial<Evidence> = {}): HostCheck {
  return judge(evidence(changes)).find((check) => check.name === name)!;
}

/** Every sandbox with the same change. */
const all = (changes: Partial<TrialObservation>): Pick<Evidence, "observations"> => ({
  observations: [observation(changes), observation({ ...open, ...changes })],
});

describe("of a host that allows everything", () => {
  test("every check is held, in order, and none has a remedy", () => {
    const checks = judge(evidence());
    expect(checks.map(({ name }) => name)).toEqual(backendCheckNames);
    expect(new Set(checks.map(({ state, remedy }) => [state, remedy].join()))).toEqual(
      new Set(["held,"]),
    );
  });
});

describe("without user namespaces", () => {
  const words = "bwrap: No permissions to create new namespace";
  const checks = judge(
    evidence({
      observations: [],
      refusals: { userNamespaces: words },
      nestedWithoutFilter: undefined,
    }),
  );

  test("that check is missing in bubblewrap's words, and no other one that needs a sandbox is held", () => {
    expect(checks[0]).toMatchObject({
      state: "missing",
      finding: expect.stringContaining(words) as unknown,
      remedy: expect.any(String) as unknown,
    });
    const held = checks.filter(({ state }) => state === "held").map(({ name }) => name);
    expect(held).toEqual(["cgroups"]);
  });

  test("no minimum is met, whatever it asks for", () => {
    expect(unmetChecks(checks, ["cgroups"]).map(({ name }) => name)).toEqual(["user-namespaces"]);
  });

  test("the refusal explains the one, and names the others", () => {
    const text = describeChecks(unmetChecks(checks, defaultMinimum));
    expect(text).toMatch(/^user-namespaces is missing: .*\n {2}\S/);
    expect(text).toMatch(/\nnot tried because of that: nested-namespaces, proc, .*, guard$/);
  });
});

describe("a check is not held when", () => {
  const cases: readonly (readonly [string, CheckName, HostCheck["state"], Partial<Evidence>])[] = [
    ["a tool makes a namespace", "nested-namespaces", "missing", all({ nested: "made" })],
    [
      "one tool does",
      "nested-namespaces",
      "missing",
      { observations: [observation(), observation({ nested: "made" })] },
    ],
    ["/proc is of another namespace", "proc", "missing", all({ proc: "other" })],
    [
      "/proc is empty",
      "fresh-proc",
      "missing",
      { ...all({ proc: "empty" }), refusals: { freshProc: "bwrap: Can't mount proc" } },
    ],
    [
      "a network namespace is refused",
      "network-namespace",
      "missing",
      { refusals: { network: "x" } },
    ],
    [
      "a sandbox without a network has the worker's",
      "network-namespace",
      "missing",
      { observations: [observation({ networkNamespace: workerNetwork })] },
    ],
    [
      "no network namespace was made for it",
      "network-namespace",
      "missing",
      { observations: [observation({ networkNamespace: undefined })] },
    ],
    ["no filter is on", "seccomp", "missing", all({ filters: 0 })],
    [
      "the only filter is around the worker",
      "seccomp",
      "missing",
      { ...all({ filters: 1 }), workerFilters: 1 },
    ],
    [
      "the limit is all that refuses",
      "seccomp",
      "missing",
      all({ nested: "unshare: unshare failed: No space left on device" }),
    ],
    ["bubblewrap takes no filter", "seccomp", "missing", { refusals: { seccomp: "bwrap: prctl" } }],
    [
      "there is none for the processor",
      "seccomp",
      "missing",
      { isFilteredArch: false, arch: "riscv64" },
    ],
    ["a limit is another inside", "rlimits", "missing", all({ wrongLimits: ["memoryBytes"] })],
    ["processes are not bounded", "rlimits", "partly", all({ startedProcesses: undefined })],
    ["processes are counted together", "rlimits", "partly", all({ startedProcesses: 2 })],
    ["a file system in memory has no end", "tmpfs", "missing", all({ endless: ["/dev/shm"] })],
    ["processes are hidden", "guard", "missing", all({ seesProcesses: false })],
    ["only tmpfs usage is hidden", "guard", "partly", all({ seesFiles: false })],
    [
      "some controllers are not there",
      "cgroups",
      "partly",
      { cgroups: { ...cgroups({ cpu: false }), remedy: "delegate" } },
    ],
    [
      "there are none",
      "cgroups",
      "missing",
      {
        cgroups: {
          cgroups: undefined,
          reason: "not this user's",
          remedy: "delegate",
          remark: undefined,
        },
      },
    ],
  ];

  test.each(cases)("%s: %s is %s", (_, name, state, changes) => {
    const check = checkOf(name, changes);
    expect(check).toMatchObject({ state, remedy: expect.any(String) as unknown });
    expect(unmetChecks(judge(evidence(changes)), [name]).map((unmet) => unmet.name)).toEqual([
      name,
    ]);
  });
});

describe("a check is held also when", () => {
  test("the host hands core dumps to a program, and says so: rlimits", () => {
    const piped = { settings: settings({ pipesCoreDumps: true }) };
    expect(checkOf("rlimits", piped)).toMatchObject({
      state: "held",
      finding: expect.stringContaining("kernel.core_pattern") as unknown,
    });
    expect(checkOf("rlimits", {}).finding).not.toContain("core");
  });

  test("/proc is empty: proc", () => {
    const changes = { ...all({ proc: "empty" }), refusals: { freshProc: "refused" } };
    expect(checkOf("proc", changes)).toMatchObject({ state: "held", finding: "empty inside" });
    expect(unmetChecks(judge(evidence(changes)), defaultMinimum)).toEqual([]);
  });

  test("bubblewrap cannot set the limit, and the filter refuses: nested-namespaces", () => {
    const refusals = { nestedLimit: "bwrap: Read-only file system" };
    const check = checkOf("nested-namespaces", { refusals, nestedWithoutFilter: undefined });
    expect(check).toMatchObject({
      state: "held",
      finding: expect.stringMatching(/filter .* alone; .*Read-only/) as unknown,
    });
  });

  test("there is no filter, and the limit refuses: nested-namespaces", () => {
    const changes = all({ filters: 0, nested: "unshare: unshare failed: No space left on device" });
    expect(checkOf("nested-namespaces", { ...changes, isFilteredArch: false })).toMatchObject({
      state: "held",
      finding: "refused inside, by a limit",
    });
  });

  test("the kernel does not count filters, and one refuses: seccomp", () => {
    const changes = { ...all({ filters: undefined }), workerFilters: undefined };
    expect(checkOf("seccomp", changes).state).toBe("held");
  });

  test("the worker is in a filter of its own: seccomp", () => {
    expect(checkOf("seccomp", { ...all({ filters: 3 }), workerFilters: 2 }).state).toBe("held");
  });
});

test("control groups that take long to join are held, and what it costs is said", () => {
  const remark = "each call waits about 8 ms";
  expect(checkOf("cgroups", { cgroups: { ...cgroups(), remark } })).toEqual({
    name: "cgroups",
    state: "held",
    finding: `cgroup v2; ${remark}`,
    remedy: undefined,
  });
});

test("what is asked for by default is all but control groups, a new /proc and egress", () => {
  expect(checkNames.filter((name) => !defaultMinimum.includes(name))).toEqual([
    "fresh-proc",
    "cgroups",
    "egress",
  ]);
});
