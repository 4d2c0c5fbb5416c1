/**
 * `str-worker doctor` on this host and on hosts that lack something.
 */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  type CheckName,
  type HostCheck,
  checkNames,
  defaultMinimum,
} from "../../../worker/sandbox/host-check.ts";
import {
  type Lack,
  asOrdinaryUser,
  crippledHost,
  crippledHostProblem,
} from "../../support/sandboxes/crippled-hosts.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";
import { type Consultation, consultHere } from "../../support/doctor/consultation.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { patience } from "../../support/patience.ts";
import { isRoot } from "../../support/is-root.ts";

interface Diagnosis {
  readonly ok: boolean;
  readonly sandbox: string;
  readonly minimum: readonly string[];
  readonly checks: readonly (Omit<HostCheck, "remedy"> & {
    readonly required: boolean;
    readonly remedy: string | null;
  })[];
}

async function consult(
  options: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  prefix: readonly string[] = [],
): Promise<Consultation> {
  await using worker = new WorkerProcess(environment, ["doctor", ...options], prefix);
  const { code } = await worker.exited;
  return { code, output: worker.output };
}

function checkOf({ output }: Consultation, name: string): Diagnosis["checks"][number] {
  const check = (JSON.parse(output) as Diagnosis).checks.find(
    (candidate) => candidate.name === name,
  );
  if (check === undefined) throw new Error(output);
  return check;
}

let base: string;
/** What the doctor says of this host as it is. */
let honest: Consultation;
beforeAll(async () => {
  base = await reachableDirectory();
  await chmod(base, 0o777);
  honest = await consultHere();
});
afterAll(() => rm(base, { recursive: true, force: true }));

describe("the doctor", () => {
  test("tells machines each check of this host, in a form of its own", () => {
    const diagnosis = JSON.parse(honest.output) as Diagnosis;
    expect(Object.keys(diagnosis)).toEqual(["ok", "sandbox", "minimum", "checks"]);
    expect(diagnosis.sandbox).toMatch(/^bubblewrap \d/);
    expect(diagnosis.minimum).toEqual(defaultMinimum);
    expect(diagnosis.checks.map(({ name }) => name)).toEqual(checkNames);
    for (const { name, state, required, finding, remedy } of diagnosis.checks) {
      expect(["held", "partly", "missing"]).toContain(state);
      expect(required).toBe(defaultMinimum.includes(name));
      expect(finding).not.toBe("");
      const isExplained = state === "held" || finding.startsWith("not tried") || remedy !== null;
      expect({ name, isExplained }).toEqual({ name, isExplained: true });
      if (state === "held") expect(remedy).toBeNull();
    }
    const isMet = diagnosis.checks.every(({ state, required }) => state === "held" || !required);
    expect([diagnosis.ok, honest.code]).toEqual([isMet, isMet ? 0 : 1]);
  });

  test(
    "tells people the same as a table, and what a worker makes of it",
    { tags: "full" },
    async () => {
      const { code, output } = await consult([]);
      for (const name of checkNames)
        expect(output).toMatch(new RegExp(`^(held|partly|missing) +${name}`, "m"));
      expect(output).toContain("* not asked for by SANDBOX_MINIMUM");
      expect(output).toContain(
        code === 0 ? "This host holds what SANDBOX_MINIMUM" : "A worker does not start here: ",
      );
      for (const line of output.split("\n").filter((text) => !/^\S*\//.test(text.trim())))
        expect(line.length).toBeLessThanOrEqual(100);
    },
  );

  test(
    "is hindered neither by what is missing nor by what is wrong outside of sandboxes",
    { tags: "full" },
    async () => {
      const wrong = {
        SAM_NAMESPACE: "//",
        DEV_BROKER_PORT: "x",
        MANIFEST_PATH: "none",
        HEALTH_PORT: "y",
      };
      expect((await consult(["--json"], wrong)).output).toMatch(/^\{/);
      expect(await consultHere({ SANDBOX_MINIMUM: "none" })).toEqual({
        code: 78,
        output: expect.stringMatching(
          /^str-worker: SANDBOX_MINIMUM: "none" is not accepted; accepted: one or more of user-namespaces, /,
        ) as unknown,
      });
      expect(await consultHere({ SANDBOX_BWRAP_BIN: "/usr/bin/true" })).toEqual({
        code: 78,
        output: expect.stringMatching(/^str-worker: SANDBOX_BWRAP_BIN: /) as unknown,
      });
    },
  );

  test("refuses what it does not understand in one line", { tags: "full" }, async () => {
    expect(await consult(["--attack", "--profile", "--json"])).toEqual({
      code: 64,
      output:
        'str-worker: --profile needs the name of a profile, not "--json"; str-worker doctor --help says what there is\n',
    });
  });

  test.for([["--help"], ["-h"], ["--attack", "--profile", "-h"]])(
    "says how it is used when it is asked: %s",
    { tags: "full" },
    async (options) => {
      const { code, output } = await consult(options);
      expect(output).toMatch(/^Usage: str-worker doctor \[--json\] /);
      for (const said of ["--attack", "--profile NAME", "--start KIND", "Exit codes:", "130, 143"])
        expect(output).toContain(said);
      expect(code).toBe(0);
    },
  );

  test(
    "attacks no profile that is not there, and says which there are",
    { tags: "full" },
    async () => {
      const file = join(base, "profiles.yaml");
      await writeFile(file, "version: 1\nprofiles: {mine: {extends: standard}}\n");
      const environment = { SANDBOX_PROFILES_FILE: file };
      expect(await consult(["--attack", "--profile=no-such"], environment)).toEqual({
        code: 78,
        output:
          'str-worker: there is no profile "no-such"; to attack there are restrictive, standard, permissive, mine\n',
      });
    },
  );

  test("does not say that a worker starts where its profiles keep it from that", async () => {
    const none = join(base, "none.yaml");
    expect(await consultHere({ SANDBOX_PROFILES_FILE: none })).toEqual({
      code: 78,
      output: `str-worker: SANDBOX_PROFILES_FILE: ${none}: cannot be read: ENOENT\n`,
    });
    const file = join(base, "unsafe.yaml");
    await writeFile(file, "version: 1\nprofiles: {bare: {extends: standard, backend: host}}\n");
    expect(await consultHere({ SANDBOX_PROFILES_FILE: file })).toEqual({
      code: 78,
      output:
        "str-worker: SANDBOX_ALLOW_UNSAFE: the backend host of the profile bare isolates nothing, and has to be allowed by 1\n",
    });
    const mistaken = { SANDBOX_PROFILES_FILE: file, SANDBOX_ALLOW_UNSAFE: "1" };
    expect(await consultHere({ ...mistaken, SANDBOX_DEFAULT_PROFILE: "mine" })).toEqual({
      code: 78,
      output:
        'str-worker: SANDBOX_DEFAULT_PROFILE: "mine" is not a profile; accepted: one of restrictive, standard, permissive, bare\n',
    });
  });

  test("fails where more is asked for than the host holds", { tags: "full" }, async (context) => {
    const host = await crippledHost("network namespaces", base);
    const problem = await crippledHostProblem(host);
    context.skip(problem !== undefined, problem);
    const asked = { SANDBOX_MINIMUM: "user-namespaces, network-namespace" };
    expect((await consult(["--json"], asked, host)).code).toBe(1);
    const waived = { SANDBOX_MINIMUM: "user-namespaces" };
    expect((await consult(["--json"], waived, host)).code).toBe(0);
  });

  test("leaves nothing behind, also in a work directory that it is given", async () => {
    const workDir = join(base, "work");
    await mkdir(workDir);
    const before = await doctorsDirectories();
    await consultHere();
    await consultHere({ SANDBOX_WORK_DIR: workDir });
    expect(await readdir(workDir)).toEqual([]);
    // Other doctors of this host are soon gone as well.
    await vi.waitFor(
      async () => {
        const left = (await doctorsDirectories()).filter((name) => !before.includes(name));
        expect(left).toEqual([]);
      },
      { timeout: 20_000 },
    );
  });

  test("hands no descriptor of its own parent to bubblewrap", { tags: "full" }, async (context) => {
    const bwrap = join(base, "bwrap");
    const seen = join(base, "descriptors");
    const script = `#!/bin/sh\nls /proc/self/fd >> ${seen}\nexec /usr/bin/bwrap "$@"\n`;
    await writeFile(bwrap, script, { mode: 0o755 });
    const prefix = ["bash", "-c", 'exec 251</etc/hostname; exec "$@"', "bash"];
    const problem = await crippledHostProblem(asOrdinaryUser);
    context.skip(problem !== undefined, problem);
    const { code, output } = await consult(["--json"], { SANDBOX_BWRAP_BIN: bwrap }, [
      ...asOrdinaryUser,
      ...prefix,
    ]);
    expect([code, output]).toEqual([0, expect.any(String)]);
    const descriptors = (await readFile(seen, "utf8")).split("\n").filter(Boolean);
    expect(descriptors).toContain("3");
    expect(descriptors).not.toContain("251");
  });
});

describe("a doctor that is stopped", () => {
  /**
   * A bubblewrap that says nothing once `condition` holds, what it waits for, and a work directory.
   */
  async function stuckHost(condition: string) {
    const directory = join(base, randomUUID());
    const workDir = join(directory, "work");
    const bwrap = join(directory, "bwrap");
    const waiting = join(directory, "waiting");
    await mkdir(workDir, { recursive: true });
    await chmod(directory, 0o777);
    const script = `#!/bin/sh
if ${condition}; then sleep 60 & echo $$ $! > ${waiting}; wait; fi
exec /usr/bin/bwrap "$@"
`;
    await writeFile(bwrap, script, { mode: 0o755 });
    return {
      environment: { SANDBOX_BWRAP_BIN: bwrap, SANDBOX_WORK_DIR: workDir },
      workDir,
      /** Numbers of its own process, and of the one that it waits for. */
      async pids(): Promise<readonly number[]> {
        const look = async (): Promise<readonly number[]> => {
          const text = await readFile(waiting, "utf8");
          expect(text).toMatch(/\n$/);
          return text.trim().split(" ").map(Number);
        };
        return vi.waitFor(look, patience);
      },
    };
  }
  /** Who has ended may still be there for who counts the dead. */
  const ended = (pid: number): Promise<void> =>
    vi.waitFor(async () => {
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "State:\tZ");
      expect(status).toMatch(/^State:\tZ/m);
    }, patience);

  const phases = [
    ["asks bubblewrap for its version", '[ "$1" = --version ]', "SIGINT", 130],
    ["tries sandboxes", '[ "$1" != --version ]', "SIGTERM", 143],
  ] as const;
  const ways = [[], ["--attack"]];
  const cases = ways.flatMap((options) => phases.map((phase) => [options, ...phase] as const));
  const title = "%j while it %s ends soon, and leaves nothing behind";

  async function endsSoon([options, , condition, signal, code]: (typeof cases)[number]) {
    const host = await stuckHost(condition);
    await using worker = new WorkerProcess(host.environment, ["doctor", ...options]);
    const pids = await host.pids();
    const startMs = performance.now();
    worker.child.kill(signal);
    expect(await worker.exited).toEqual({ code, signal: null });
    // bubblewrap is waited for five seconds, while a trial may take 20 before that, and there are
    // several.
    expect(performance.now() - startMs).toBeLessThan(20_000);
    expect(worker.output).toBe(`str-worker: stopped by ${signal}\n`);
    expect(await readdir(host.workDir)).toEqual([]);
    await Promise.all(pids.map(ended));
  }
  test.for(cases)(title, { tags: "full" }, endsSoon);

  test("once more ends at once", { tags: "full" }, async () => {
    const host = await stuckHost('[ "$1" != --version ]');
    await using worker = new WorkerProcess(host.environment, ["doctor"]);
    const [own = 0, other = 0] = await host.pids();
    worker.child.kill("SIGINT");
    worker.child.kill("SIGTERM");
    // Which of the two comes second is the kernel's choice.
    expect([130, 143]).toContain((await worker.exited).code);
    // Who had waited for bubblewrap would have told what stopped it.
    expect(worker.output).toBe("");
    await ended(own);
    process.kill(other);
  });
});

async function doctorsDirectories(): Promise<readonly string[]> {
  return (await readdir("/tmp")).filter((name) => name.startsWith("str-doctor-"));
}

describe("on a host without", () => {
  const cases: readonly (readonly [Lack, string, RegExp, RegExp])[] = [
    [
      "user namespaces",
      "user-namespaces",
      /namespaces exceeded \(ENOSPC\)/,
      /sysctl -w user\.max_user_namespaces=/,
    ],
    [
      "network namespaces",
      "network-namespace",
      /namespaces exceeded \(ENOSPC\)/,
      /sysctl -w user\.max_net_namespaces=/,
    ],
    [
      "a /proc of its own",
      "fresh-proc",
      /Can't mount proc/,
      /systempaths=unconfined|unmask=ALL|procMount: Unmasked/,
    ],
    [
      "system calls",
      "user-namespaces",
      /No permissions to create new namespace|Operation not permitted/,
      /seccomp=deploy\/seccomp\.json|seccompProfile/,
    ],
  ];

  test.for(cases)(
    "%s the check %s is missing, and the remedy is named",
    { tags: "full" },
    async (row, context) => {
      const [lack, name, finding, remedy] = row;
      const host = await crippledHost(lack, base);
      const problem = await crippledHostProblem(host);
      context.skip(problem !== undefined, `such a host cannot be made here: ${problem}`);
      const consultation = await consult(["--json"], {}, host);
      expect(checkOf(consultation, name)).toMatchObject({
        state: "missing",
        finding: expect.stringMatching(finding) as unknown,
        remedy: expect.stringMatching(remedy) as unknown,
      });
      expect(consultation.code).toBe(defaultMinimum.some((asked) => asked === name) ? 1 : 0);
    },
  );

  test(
    "sockets in sandboxes the check egress is missing, which has to be asked for",
    { tags: "full" },
    async () => {
      const environment = { SANDBOX_PYTHON_BIN: "/usr/bin/false" };
      const consultation = await consultHere(environment);
      expect(checkOf(consultation, "egress")).toMatchObject({
        state: "missing",
        finding: expect.stringMatching(/^no sockets of the worker in a sandbox: \w/) as unknown,
        remedy: expect.stringMatching(/setns\(2\).*SANDBOX_PYTHON_BIN/) as unknown,
      });
      expect(consultation.code).toBe(honest.code);
      const asked = { ...environment, SANDBOX_MINIMUM: "user-namespaces,egress" };
      expect(await consultHere(asked)).toMatchObject({ code: 1 });
    },
  );

  test(
    "a /proc of its own an empty one is enough for the minimum",
    { tags: "full" },
    async (context) => {
      const host = await crippledHost("a /proc of its own", base);
      const problem = await crippledHostProblem(host);
      context.skip(problem !== undefined, problem);
      const consultation = await consult(["--json"], {}, host);
      expect(checkOf(consultation, "proc")).toMatchObject({
        state: "held",
        finding: "empty inside",
      });
      expect(consultation.code).toBe(0);
    },
  );

  test(
    "sysctls to write, as in containers, nested namespaces are refused by the filter alone",
    { tags: "full" },
    async (context) => {
      const host = await crippledHost("sysctls", base);
      const problem = await crippledHostProblem(host);
      context.skip(problem !== undefined, problem);
      const consultation = await consult(["--json"], {}, host);
      expect(checkOf(consultation, "nested-namespaces")).toMatchObject({
        state: "held",
        finding: expect.stringMatching(
          /filter of system calls alone.*Read-only file system/,
        ) as unknown,
      });
      expect(consultation.code).toBe(0);
    },
  );

  test(
    "the right to look into other users' processes the check guard of a root is held partly",
    { tags: "full" },
    async (context) => {
      context.skip(!isRoot, "needs root");
      const prefix = ["setpriv", "--bounding-set=-sys_ptrace,-sys_admin", "--inh-caps=-all"];
      const consultation = await consult(["--json"], {}, prefix);
      expect(checkOf(consultation, "guard")).toMatchObject({
        state: "partly",
        remedy: expect.stringContaining("CAP_SYS_PTRACE") as unknown,
      });
      expect(consultation.code).toBe(1);
    },
  );
});

/**
 * How a bubblewrap betrays the doctor: it edits options, one of them a line, or does something
 * before it starts.
 */
interface Betrayal {
  readonly edit?: string;
  readonly shell?: string;
}

async function disloyalBubblewrap({ edit = "", shell = "" }: Betrayal): Promise<string> {
  const directory = join(base, randomUUID());
  await mkdir(directory);
  await chmod(directory, 0o777);
  const path = join(directory, "bwrap");
  const script = `#!/bin/bash
[[ "$*" = *"--args 3 "* ]] || exec /usr/bin/bwrap "$@"
sed -z '${edit}' <&3 > ${directory}/$$
until [ "$1" = -- ]; do own="$own $1"; shift; done
${shell}
exec /usr/bin/bwrap $own "$@" 3< ${directory}/$$
`;
  await writeFile(path, script, { mode: 0o755 });
  return path;
}

describe("what the doctor takes for held was really tried: it is not held where bubblewrap", () => {
  const noFilter = 'own="${own/--seccomp 4/}"';
  const cases: readonly (readonly [string, Betrayal, readonly CheckName[]])[] = [
    ["sets no filter", { shell: noFilter }, ["seccomp"]],
    [
      "sets neither filter nor limit of namespaces",
      { shell: noFilter, edit: "/^--disable-userns$/d" },
      ["nested-namespaces", "seccomp"],
    ],
    [
      "shows the host's processes",
      { edit: "s/^--proc$/--ro-bind\\x00\\/proc/" },
      ["proc", "fresh-proc"],
    ],
    [
      "leaves the host's network",
      { edit: "s/^--unshare-all$/&\\x00--share-net/" },
      // Not tried: there is no network namespace to try it in.
      ["network-namespace", "egress"],
    ],
    ["gives file systems in memory no size", { edit: "/^--size$/{N;d}" }, ["tmpfs"]],
    [
      "sets no limits",
      { shell: 'if [[ "$2" = */prlimit ]]; then shift; until [ "$1" = -- ]; do shift; done; fi' },
      ["rlimits"],
    ],
    [
      "lifts the limit of processes",
      { shell: 'set -- "${@/--nproc=8:8/--nproc=99:99}"' },
      ["rlimits"],
    ],
  ];

  async function isFound([, betrayal, expected]: (typeof cases)[number], context: TestContext) {
    context.skip(honest.code !== 0, "this host does not hold the usual minimum");
    const bwrap = await disloyalBubblewrap(betrayal);
    const betrayed = await consultHere({ SANDBOX_BWRAP_BIN: bwrap });
    const lost = (JSON.parse(betrayed.output) as Diagnosis).checks
      .filter(({ name, state }) => state !== "held" && checkOf(honest, name).state === "held")
      .map(({ name }) => name);
    expect(lost).toEqual(expected);
    expect(betrayed.code).toBe(1);
  }
  const usual = ["sets no filter", "leaves the host's network"];
  test.for(cases.filter(([what]) => usual.includes(what)))("%s", isFound);
  test.for(cases.filter(([what]) => !usual.includes(what)))("%s", { tags: "full" }, isFound);
});
