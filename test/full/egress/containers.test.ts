/**
 * Lists and `public` in containers without any capability, under the seccomp profile of `deploy/`:
 * docs/containers.md says what they need.
 *
 * @module-tag full
 */
import { expect, test } from "vitest";
import { egressAttacks } from "../../../worker/doctor/attacks/catalog/egress.ts";
import {
  type ContainerOptions,
  checkoutInside,
  hostsInside,
  nodeInside,
} from "../../support/containers/oci-bundle.ts";
import {
  type ContainerEnd,
  OciRuntime,
  type RuntimeName,
} from "../../support/containers/oci-runtime.ts";

/** What engines give root unless they are told otherwise. */
const usualCapabilities = [
  ...["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"],
  ...["NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT", "AUDIT_WRITE"],
].map((name) => `CAP_${name}`);

interface Case {
  readonly who: string;
  readonly options: ContainerOptions;
  /** runc unless given. */
  readonly runtimeName?: RuntimeName;
  /** What `--start` is, and the starts that it is about. */
  readonly choice: string;
  readonly starts: readonly string[];
  readonly bounding: RegExp;
}

const none = /^0+$/;
const cases: readonly Case[] = [
  {
    who: "an ordinary user",
    options: { uid: 1000 },
    ...{ choice: "all", starts: ["cold", "pool", "template"], bounding: none },
  },
  {
    who: "a user whose /proc is masked",
    options: { uid: 1000, isProcMasked: true },
    // Templates need a /proc of their own.
    ...{ choice: "usual", starts: ["cold", "pool"], bounding: none },
  },
  {
    who: "an ordinary user, by crun",
    options: { uid: 1000 },
    runtimeName: "crun",
    ...{ choice: "all", starts: ["cold", "pool", "template"], bounding: none },
  },
  {
    who: "root with capabilities",
    options: { uid: 0, capabilities: [...usualCapabilities, "CAP_SYS_PTRACE"] },
    ...{ choice: "all", starts: ["cold", "pool", "template"], bounding: /[^0]/ },
  },
];

const other = 81;
const targets = [
  ["api.example.com", 80],
  ["other.example.com", 80],
  ["internal.example.com", 80],
  [hostsInside["other.example.com"], 80],
  ["169.254.169.254", 80],
  ["api.example.com", other],
] as const;

const byList = {
  lines: [
    ...["greeting", "gaierror", "gaierror"],
    ...["ConnectionResetError", "ConnectionResetError", "ConnectionRefusedError"],
  ],
  refusals: [
    { host: "other.example.com", reason: "name-not-allowed" },
    { host: "internal.example.com", reason: "name-not-allowed" },
    { host: hostsInside["other.example.com"], port: 80, reason: "no-rule" },
    { host: "169.254.169.254", port: 80, reason: "no-rule" },
  ],
};
const byPublic = {
  lines: [
    ...["greeting", "greeting", "ConnectionResetError"],
    ...["greeting", "ConnectionResetError", "ConnectionRefusedError"],
  ],
  refusals: [
    { host: "internal.example.com", port: 80, reason: "not-public" },
    { host: "169.254.169.254", port: 80, reason: "not-public" },
  ],
};

/** Runs a program of this checkout. */
function runInside(
  runtime: OciRuntime,
  options: ContainerOptions,
  [program, ...argv]: readonly [string, ...string[]],
): Promise<ContainerEnd> {
  return runtime.run(options, [nodeInside, `${checkoutInside}/${program}`, ...argv]);
}

/** Calls a worker of this checkout. */
function callInside(
  runtime: OciRuntime,
  options: ContainerOptions,
  starts: readonly string[],
): Promise<ContainerEnd> {
  return runInside(runtime, options, [
    "test/support/containers/called-worker.ts",
    ...[targets, starts].map((list) => JSON.stringify(list)),
  ]);
}

test.for(cases)(
  "a worker keeps lists and public in a container of $who",
  { tags: "promise-S34" },
  async ({ options, runtimeName, starts, bounding }, context) => {
    const runtime = await OciRuntime.open(context, runtimeName);
    const end = await callInside(runtime, options, starts);
    expect(end).toMatchObject({ status: 0, stderr: "" });
    const report = JSON.parse(end.stdout) as { readonly calls: readonly object[] };
    expect(report).toMatchObject({
      uid: options.uid,
      capabilities: expect.stringMatching(bounding),
      check: "held",
      // All of it is there to be reached, but for the other port.
      withoutSandbox: targets.map(([, port]) =>
        port === other ? (expect.stringContaining("ECONNREFUSED") as string) : "greeting",
      ),
    });
    expect(report.calls).toEqual([
      ...starts.map((start) => ({ network: "list", start, ...byList })),
      ...starts.map((start) => ({ network: "public", start, ...byPublic })),
    ]);
  },
);

test.for(cases)(
  "every attack on a list is held in a container of $who",
  { tags: "promise-S34" },
  async ({ options, runtimeName, choice, starts }, context) => {
    const runtime = await OciRuntime.open(context, runtimeName);
    const end = await runInside(runtime, options, [
      "test/support/doctor/attack-run.ts",
      ...["--json", "--profile", "standard", "--start", choice],
      ...egressAttacks.map(({ id }) => id),
    ]);
    expect(end.stderr).toBe("");
    expect(JSON.parse(end.stdout)).toMatchObject({
      ok: true,
      profiles: starts.map((start) => ({ start, works: true })),
      attacks: egressAttacks.flatMap(({ id }) =>
        starts.map((start) => ({ id, start, verdict: "held" })),
      ),
    });
  },
);

test(
  "where setns is refused, no tool with a list or public runs",
  { tags: "promise-S34" },
  async (context) => {
    const runtime = await OciRuntime.open(context);
    const options = { uid: 1000, refusedCalls: ["setns"] };
    const doctor = await runInside(runtime, options, ["worker/main.ts", "doctor"]);
    expect(doctor.stdout).toMatch(/^missing +egress/m);
    expect(doctor.stdout).toContain("deploy/seccomp.json");
    const { stdout } = await callInside(runtime, options, ["cold"]);
    const refused = { code: "TOOL_NOT_AVAILABLE" };
    expect(JSON.parse(stdout)).toMatchObject({ check: "missing", calls: [refused, refused] });
  },
);

test("root without any capability makes no sandbox, and learns who would", async (context) => {
  const runtime = await OciRuntime.open(context);
  const bwrap = ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"];
  const made = await runtime.run({ uid: 0 }, bwrap);
  expect(made).toMatchObject({ status: 1, stderr: expect.stringContaining("uid map") });
  const { status, stderr } = await runInside(runtime, { uid: 0 }, ["worker/main.ts", "doctor"]);
  expect(stderr).toContain("run the worker as an ordinary user, which needs no capability");
  expect(status).toBe(78);
});
