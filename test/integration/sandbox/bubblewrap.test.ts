/**
 * What is bubblewrap's own of commands in real sandboxes; what every backend does is in
 * test/conformance/sandbox-backend.ts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { chmod, readFile, readdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type BubblewrapBackend,
  openBubblewrap,
} from "../../../worker/sandbox/bubblewrap/backend.ts";
import { builtInProfiles, restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { childrenOf } from "../../../worker/sandbox/proc/processes.ts";
import type { Execution } from "../../../worker/sandbox/sandbox.ts";
import {
  backendOptions,
  never,
  openBackend,
  openedSince,
  presentDescriptors,
  outputFile,
  processesIn,
  processesWith,
  request,
  requireRoot,
  runScript,
  sayReady,
  sharedBackends,
  shell,
  temporaryDirectory,
  uniqueSleep,
} from "./sandbox-host.ts";
import { patience } from "../../support/patience.ts";

const open = sharedBackends();

/** Runs a shell script in a sandbox of its own and gives that back. */
async function run(backend: BubblewrapBackend, script: string, changes = {}) {
  await using sandbox = await backend.acquire(request(changes), never);
  return await runScript(sandbox, script);
}

/** A sandbox in which a shell script is running and has said that it is. */
async function start(backend: BubblewrapBackend, script: string) {
  const sandbox = await backend.acquire(request(), never);
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  const execution = await sandbox.start(shell(script));
  return { sandbox, execution, ready: () => outputFile(sandbox, "ready") };
}

/** A bubblewrap as on a host that refuses what one of its options asks for. */
async function bubblewrapWithout(option: string): Promise<string> {
  const directory = await temporaryDirectory();
  await chmod(directory, 0o777);
  const path = join(directory, "bwrap");
  await writeFile(
    path,
    `#!/bin/bash
[[ "$*" = *"--args 3 "* ]] || exec /usr/bin/bwrap "$@"
options=${directory}/$$
cat <&3 > $options
if grep -qzx -e ${option} $options; then echo "bwrap: ${option}: Operation not permitted" >&2; exit 1; fi
exec /usr/bin/bwrap "$@" 3< $options
`,
    { mode: 0o755 },
  );
  return path;
}

describe("a command in a sandbox", () => {
  test("runs in its work directory with nothing in its environment but what it is given", async (context) => {
    const backend = await open(context);
    const environment = new Map([
      ["PATH", "/usr/bin"],
      ["GREETING", "two words\nand a line"],
      ["EMPTY", ""],
    ]);
    const { stdout } = await run(backend, "pwd; env -0 | sort -z | tr '\\0' '|'", { environment });
    expect(stdout.text).toBe(
      "/sandbox/work\nEMPTY=|GREETING=two words\nand a line|PATH=/usr/bin|PWD=/sandbox/work|",
    );
  });

  test("sees a mount of the host and cannot write to it", async (context) => {
    const backend = await open(context);
    const source = await temporaryDirectory();
    await writeFile(join(source, "module.py"), "VERSION = 1\n");
    const mounts = [{ source, target: "/tools/python" }];
    const report = await run(backend, "cat /tools/python/module.py; touch /tools/python/x", {
      mounts,
    });
    expect(report).toMatchObject({
      exitCode: 1,
      stdout: { text: "VERSION = 1\n" },
      stderr: { text: expect.stringContaining("Read-only file system") as unknown },
    });
  });

  test("is under the limits of its profile", async (context) => {
    const backend = await open(context);
    const profile = builtInProfiles.get("restrictive")!;
    const { stdout } = await run(
      backend,
      'for limit in v t f n c; do ulimit -H -$limit; done; grep "Max processes" /proc/self/limits',
      { profile },
    );
    const [addressSpace, cpu, fileSize, openFiles, core, processes] = stdout.text.split("\n");
    expect(Number(addressSpace) * 1024).toBe(profile.limits.memoryBytes);
    // The kill comes a second after the signal.
    expect(Number(cpu)).toBe(profile.limits.cpuSeconds + 1);
    expect(Number(fileSize) * 512).toBe(profile.limits.fileSizeBytes);
    expect(Number(openFiles)).toBe(profile.limits.openFiles);
    expect(Number(core)).toBe(0);
    expect(processes).toMatch(/^Max processes +32 +32 /);
  });
});

describe("a command that is stopped", () => {
  test("after its end has its report", async (context) => {
    const backend = await open(context);
    await using sandbox = await backend.acquire(request(), never);
    const execution = await sandbox.start(shell("exit 4"));
    await execution.exited;
    const kill = vi.spyOn(process, "kill");
    onTestFinished(() => kill.mockRestore());
    expect(await execution.stop(0)).toMatchObject({ exitCode: 4 });
    expect(kill).not.toHaveBeenCalled();
  });

  test("after its end is not mistaken for the process that has its number now", async (context) => {
    requireRoot(context);
    const backend = await open(context);
    const { marker, command } = uniqueSleep();
    const { execution } = await start(backend, command);
    const first = await vi.waitFor(() => firstProcess(marker), patience);
    process.kill(first, "SIGKILL");
    await execution.exited;
    const stranger = await startAs(first);
    if (stranger === undefined) return context.skip("no process can be given the number again");
    onTestFinished(() => {
      if (stranger.exitCode === null) killGroup(stranger);
    });
    await execution.stop(100);
    // A signal that was sent before this comes first.
    stranger.stdin?.write("still here?\n");
    expect(String(await once(stranger.stdout!, "data"))).toBe("still here?\n");
    expect([stranger.exitCode, stranger.signalCode]).toEqual([null, null]);
  });
});

/**
 * The first process of the sandbox in which a marked command runs: its parent's parent is this
 * process.
 */
async function firstProcess(marker: string): Promise<number> {
  for (const bwrap of childrenOf(process.pid)) {
    const [first] = childrenOf(bwrap);
    const commandLine = await readFile(`/proc/${first}/cmdline`, "utf8").catch(() => "");
    if (first !== undefined && commandLine.includes(marker)) return first;
  }
  throw new Error("the command does not run yet");
}

/**
 * Starts a process that has a number which was another's, with a child that says what it is told.
 */
async function startAs(pid: number): Promise<ChildProcess | undefined> {
  for (let attempt = 0; attempt < 20; attempt++) {
    try {
      writeFileSync("/proc/sys/kernel/ns_last_pid", String(pid - 1));
    } catch {
      return undefined;
    }
    const child = spawn("sh", ["-c", "echo started; cat; exit"], { detached: true });
    await once(child.stdout, "data");
    if (child.pid === pid) return child;
    killGroup(child);
  }
  return undefined;
}

function killGroup(leader: ChildProcess): void {
  process.kill(-leader.pid!, "SIGKILL");
}

describe("when a command is reported as ended", () => {
  /**
   * Starts something that goes on after the command, and writes to output/ticks as long as it
   * lives.
   */
  const ticking = "while :; do echo >> output/ticks; done";

  const children = [
    ["a child in the background", `(${ticking}) & `],
    ["a child in a session of its own", `setsid sh -c '${ticking}' & `],
    [
      "a child that let go of everything",
      `setsid sh -c '${ticking}' < /dev/null > /dev/null 2>&1 & `,
    ],
    ["a child that ignores every signal it can", `(trap '' TERM HUP INT; ${ticking}) & `],
  ] as const;

  async function endsWithIt(context: TestContext, child: string, runCount: number): Promise<void> {
    const backend = await open(context);
    for (let runNumber = 0; runNumber < runCount; runNumber++) {
      await using sandbox = await backend.acquire(request(), never);
      const report = await runScript(
        sandbox,
        `${child} while [ ! -s output/ticks ]; do :; done; exit 7`,
      );
      expect(await processesIn(sandbox.workDir.path)).toEqual([]);
      expect(report.exitCode).toBe(7);
    }
  }

  test.for(children)("nothing of it lives any more: %s", ([, child], context) =>
    endsWithIt(context, child, 2),
  );
  test.for(children)(
    "nothing of it lives any more, in 30 runs: %s",
    { tags: "full" },
    ([, child], context) => endsWithIt(context, child, 30),
  );

  async function endsStopped(context: TestContext, runCount: number): Promise<void> {
    const backend = await open(context);
    for (let runNumber = 0; runNumber < runCount; runNumber++) {
      const { sandbox, execution, ready } = await start(
        backend,
        `setsid sh -c '${ticking}' & ${sayReady}; sleep 60`,
      );
      await ready();
      expect(await processesIn(sandbox.workDir.path)).not.toEqual([]);
      await execution.stop(runNumber % 2 === 0 ? 0 : 200);
      expect(await processesIn(sandbox.workDir.path)).toEqual([]);
    }
  }

  test(
    "because it was stopped, nothing of it lives any more either",
    { tags: "promise-E5" },
    (context) => endsStopped(context, 2),
  );
  test("because it was stopped, the same, in 10 runs", { tags: "full" }, (context) =>
    endsStopped(context, 10),
  );
});

describe("a sandbox", () => {
  test("that cannot be set up did not start, and why is in bubblewrap's words", async (context) => {
    const backend = await open(context);
    const mounts = [{ source: "/no/such/directory", target: "/tools/python" }];
    const report = await run(backend, "echo never", { mounts });
    expect(report).toMatchObject({ started: false, exitCode: undefined, signal: undefined });
    expect(report.stdout.text).toBe("");
    expect(report.stderr.text).toContain("Can't find source path /no/such/directory");
  });

  test(
    "that is given back as soon as it was started leaves no process, in 30 runs",
    { tags: "full" },
    async (context) => {
      const backend = await open(context);
      const { marker, command } = uniqueSleep();
      const executions: Execution[] = [];
      for (let runNumber = 0; runNumber < 30; runNumber++) {
        await using sandbox = await backend.acquire(request(), never);
        executions.push(await sandbox.start(shell(command)));
        if (runNumber % 3 > 0) await sleep(runNumber % 3);
      }
      await Promise.all(executions.map(({ exited }) => exited));
      await vi.waitFor(async () => expect(await processesWith(marker)).toEqual([]), patience);
    },
  );
});

describe("a backend", () => {
  test("knows the host that it runs on", async (context) => {
    const backend = await open(context);
    const { host } = backend;
    expect(backend.facts(restrictiveProfile).technology).toContain(host.version);
    expect(host.version).toMatch(/^bubblewrap \d+\.\d+/);
    expect(host.cpuIds.length).toBeGreaterThan(0);
    expect(host.systemDirectories.map(({ path }) => path)).toContain("/bin");
    expect(["fresh", "empty"]).toContain(host.proc);
  });

  test("says of each sandbox what the host does not allow", async (context) => {
    const backend = await open(context);
    await using sandbox = await backend.acquire(request(), never);
    expect(sandbox.unenforced).toEqual(backend.host.proc === "fresh" ? [] : ["fresh-proc"]);
  });

  test("makes sandboxes that see the host's name where they cannot have their own, and says so", async (context) => {
    const bwrapBin = await bubblewrapWithout("--hostname");
    const backend = await openBackend(context, { bwrapBin });
    onTestFinished(() => backend[Symbol.asyncDispose]());
    expect(backend.host).toMatchObject({ namesHost: false });
    expect(backend.facts(restrictiveProfile).unenforced).toContain("host-name");
    expect((await run(backend, "uname -n")).stdout.text).toBe(`${hostname()}\n`);

    const named = await open(context);
    expect(named.facts(restrictiveProfile).unenforced).not.toContain("host-name");
    expect((await run(named, "uname -n")).stdout.text).toBe("sandbox\n");
  });

  test.each([
    ["that is not there", "/no/such/bwrap", "cannot use /no/such/bwrap as bubblewrap"],
    ["that fails", "/usr/bin/false", "cannot use /usr/bin/false as bubblewrap"],
    ["that is another program", "/usr/bin/true", "cannot use /usr/bin/true as bubblewrap"],
  ])(
    "does not open with a bubblewrap %s, and leaves nothing open or behind",
    async (_name, bwrapBin, message) => {
      const base = await temporaryDirectory();
      const before = await presentDescriptors();
      const opening = openBubblewrap({
        ...backendOptions(base),
        bwrapBin,
        onRemoveFailed: () => undefined,
        onGuardLost: () => undefined,
      });
      await expect(opening).rejects.toThrow(
        expect.objectContaining({
          name: "SandboxError",
          message: expect.stringContaining(message) as unknown,
        }),
      );
      expect(await readdir(base)).toEqual([]);
      await vi.waitFor(async () => expect(await openedSince(before)).toEqual([]), patience);
    },
  );
});
