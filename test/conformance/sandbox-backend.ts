/**
 * What every sandbox backend has to do: run `describeSandboxBackend` for each of them, one's own included.
 */
import { chmod, mkdir, mkdtemp, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { limitNames } from "../../worker/protocol/resource-limits.ts";
import { builtInProfiles, restrictiveProfile } from "../../worker/sandbox/profile.ts";
import {
  type Execution,
  type ExitReport,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxRequest,
  insidePaths,
} from "../../worker/sandbox/sandbox.ts";
import { openStatusChannel } from "../../worker/sandbox/work/status-channel.ts";
import { maxOutputBytes } from "../../worker/sandbox/subprocess.ts";
import { workDirNames } from "../../worker/sandbox/work/work-dir.ts";
import { inheritableDescriptors } from "../../worker/support/inherited-descriptors.ts";

/** What may differ between backends. */
export interface SandboxBackendTraits {
  /** What runs inside sees neither the host's processes and private files, nor those of other sandboxes. */
  readonly isolates: boolean;
}

/**
 * Describes a backend as vitest tests.
 *
 * `create` is called inside each test and opens a backend that works, in a directory of its own and with nothing else in it;
 * the test disposes it. It skips the test where the host cannot do what the backend needs. What runs inside is a POSIX
 * shell and coreutils.
 */
export function describeSandboxBackend(
  name: string,
  create: (context: TestContext) => Promise<SandboxBackend>,
  traits: SandboxBackendTraits,
): void {
  describe(`sandbox backend: ${name}`, () => {
    describeCommands(create);
    describeOutput(create);
    describeStopping(create);
    describeEnd(create);
    describePlaces(create);
    describeReports(create, traits);
    describeSandboxes(create, traits);
  });
}

type Create = (context: TestContext) => Promise<SandboxBackend>;

const never = new AbortController().signal;
const patience = { timeout: 10_000, interval: 20 };

function request(changes: Partial<SandboxRequest> = {}): SandboxRequest {
  return {
    profile: restrictiveProfile,
    memoryBound: "address-space",
    mounts: [],
    devices: [],
    environment: new Map([["PATH", "/usr/bin:/bin"]]),
    ...changes,
  };
}

/** A backend for one test, closed after it. */
async function open(create: Create, context: TestContext): Promise<SandboxBackend> {
  const backend = await create(context);
  onTestFinished(() => backend[Symbol.asyncDispose]());
  return backend;
}

function shell(script: string) {
  return { argv: ["/bin/sh", "-c", script] };
}

/** Runs a script to its end in a sandbox that exists already. */
async function runIn(sandbox: Sandbox, script: string): Promise<ExitReport> {
  return (await sandbox.start(shell(script))).exited;
}

/** Runs a script in a sandbox of its own and gives that back. */
async function run(
  backend: SandboxBackend,
  script: string,
  changes: Partial<SandboxRequest> = {},
): Promise<ExitReport> {
  await using sandbox = await backend.acquire(request(changes), never);
  return await runIn(sandbox, script);
}

const sayReady = "echo > output/ready";
const waitForever = "while :; do sleep 0.05; done";

/** A sandbox in which a script has said that it is running. */
async function startReady(backend: SandboxBackend, script: string) {
  const sandbox = await backend.acquire(request(), never);
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  const execution = await sandbox.start(shell(script));
  await left(sandbox, "ready");
  return { sandbox, execution };
}

/** The content of a file in output/, as soon as it is there. */
function left(sandbox: Sandbox, name: string): Promise<string> {
  return vi.waitFor(() => readFile(join(sandbox.workDir.path, "output", name), "utf8"), patience);
}

/** A command that goes on, and words that no other command line has. */
function uniqueSleep(): { readonly marker: string; readonly command: string } {
  const marker = `86400.${Math.floor(Math.random() * 1e12)}`;
  return { marker, command: `sleep ${marker}` };
}

/** Waits until a command of {@link uniqueSleep} runs, and not only the shell that was told of it. */
async function runs(command: string): Promise<void> {
  const commandLine = `${command.replaceAll(" ", "\0")}\0`;
  await vi.waitFor(async () => expect(await commandLines()).toContain(commandLine), patience);
}

/** How many processes of this host have a text on their command line, zombies left out. */
async function processesWith(marker: string): Promise<number> {
  return (await commandLines()).filter((line) => line.includes(marker)).length;
}

/** The command lines of all processes of this host, with a NUL after each word. */
async function commandLines(): Promise<string[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")));
}

/** A directory that sandboxes can reach, with one file in it; it goes with the backend. */
async function directoryWith(backend: SandboxBackend, name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(backend.scratchDir, "conformance-"));
  await chmod(directory, 0o755);
  await writeFile(join(directory, name), text);
  return directory;
}

function describeCommands(create: Create): void {
  describe("a command", () => {
    test.for([0, 1, 3, 127, 200, 255])("ends with exit code %d", async (code, context) => {
      const backend = await open(create, context);
      const ending = { started: true, exitCode: code, signal: undefined, exceeded: undefined };
      expect(await run(backend, `exit ${code}`)).toMatchObject(ending);
    });

    test.for(["TERM", "KILL", "SEGV", "ABRT"])("ends by signal SIG%s", async (signal, context) => {
      const backend = await open(create, context);
      const ending = { started: true, exitCode: undefined, signal: `SIG${signal}` };
      expect(await run(backend, `kill -${signal} $$`)).toMatchObject(ending);
    });

    test("that does not exist is an exit code, and why is on stderr", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start({ argv: ["/no/such/program"] });
      const report = await execution.exited;
      expect(report.exitCode).toBeGreaterThan(0);
      expect(report.stderr.text).toContain("/no/such/program");
    });

    test("has nothing in its environment but what it is given", async (context) => {
      const backend = await open(create, context);
      const environment = new Map([
        ["PATH", "/usr/bin:/bin"],
        ["GREETING", "two words\nand a line"],
        ["ADDRESS", "https://example.org:8080/a?b=c"],
        ["EMPTY", ""],
      ]);
      await using sandbox = await backend.acquire(request({ environment }), never);
      const execution = await sandbox.start({ argv: ["/usr/bin/env", "-0"] });
      const { stdout } = await execution.exited;
      const seen = stdout.text
        .split("\0")
        .filter((line) => line !== "" && !line.startsWith("PWD="));
      expect(seen.sort()).toEqual([...environment].map((pair) => pair.join("=")).sort());
    });

    test("has no input, and no descriptors but the three", async (context) => {
      const backend = await open(create, context);
      const { stdout } = await run(backend, "cat; readlink /dev/fd/0; exec ls /dev/fd/");
      const [input, ...descriptors] = stdout.text.trim().split("\n");
      expect(input).toBe("/dev/null");
      // What the test runner itself has inherited is closed by worker/main.ts alone.
      const inherited = inheritableDescriptors().map(String);
      // The fourth is the listing itself.
      const own = descriptors.filter((descriptor) => !inherited.includes(descriptor));
      expect(own).toEqual(["0", "1", "2", "3"]);
    });

    test("is under the limits that the kernel keeps", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      expect(sandbox.enforcement).toMatchObject({ openFiles: "kernel", fileSizeBytes: "kernel" });
      const { stdout } = await runIn(sandbox, "ulimit -H -n; ulimit -n; ulimit -H -f; ulimit -c");
      const { openFiles, fileSizeBytes } = restrictiveProfile.limits;
      const blocks = fileSizeBytes / 512;
      expect(stdout.text).toBe([openFiles, openFiles, blocks, 0, ""].join("\n"));
    });
  });
}

function describeOutput(create: Create): void {
  describe("the output of a command", () => {
    test("is kept apart by stream, of its children too", async (context) => {
      const backend = await open(create, context);
      expect(
        await run(backend, "(sleep 0.05; echo late) & echo out; echo err >&2; wait"),
      ).toMatchObject({
        stdout: { text: "out\nlate\n", droppedBytes: 0 },
        stderr: { text: "err\n", droppedBytes: 0 },
      });
    });

    test("is kept to its end, and the rest is counted and holds nobody up", async (context) => {
      const backend = await open(create, context);
      const bytes = 20_000_000;
      const { exitCode, stdout, stderr } = await run(
        backend,
        `head -c ${bytes} /dev/zero; echo; echo end; head -c ${bytes} /dev/zero >&2`,
      );
      expect(exitCode).toBe(0);
      expect(stdout.text).toHaveLength(maxOutputBytes);
      expect(stdout.text.endsWith("\0\nend\n")).toBe(true);
      expect(stdout.droppedBytes).toBe(bytes + "\nend\n".length - maxOutputBytes);
      expect(stderr.droppedBytes).toBe(bytes - maxOutputBytes);
    });

    test("is handed on as it comes, from the first byte", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell("echo first; echo aside >&2; cat input/go"));
      const heard = { stdout: "", stderr: "" };
      execution.onOutput((stream, chunk) => (heard[stream] += Buffer.from(chunk).toString()));
      await execution.exited;
      expect(heard.stdout).toBe("first\n");
      expect(heard.stderr).toMatch(/^aside\ncat: .+\n$/);
    });

    test("that is no text does no harm", async (context) => {
      const backend = await open(create, context);
      const { stdout } = await run(backend, "printf 'a\\377\\376b'");
      expect(stdout.text).toBe("a\ufffd\ufffdb");
    });
  });
}

function describeStopping(create: Create): void {
  describe("a command that is stopped", () => {
    test("is asked first, and what it does then counts", async (context) => {
      const backend = await open(create, context);
      const { sandbox, execution } = await startReady(
        backend,
        `trap 'echo tidied > output/bye; exit 9' TERM; ${sayReady}; ${waitForever}`,
      );
      expect(await execution.stop(10_000)).toMatchObject({ started: true, exitCode: 9 });
      expect(await left(sandbox, "bye")).toBe("tidied\n");
    });

    test("is killed after its grace when it does not listen", async (context) => {
      const backend = await open(create, context);
      const { execution } = await startReady(backend, `trap '' TERM; ${sayReady}; ${waitForever}`);
      const startMs = performance.now();
      const report = await execution.stop(500);
      expect(performance.now() - startMs).toBeGreaterThan(490);
      expect(report).toMatchObject({ started: true, exitCode: undefined, signal: "SIGKILL" });
    });

    test("is killed without a question when there is no grace", async (context) => {
      const backend = await open(create, context);
      const { sandbox, execution } = await startReady(
        backend,
        `trap 'echo > output/asked' TERM; ${sayReady}; ${waitForever}`,
      );
      expect(await execution.stop(0)).toMatchObject({ started: true, exitCode: undefined });
      expect(await readdir(join(sandbox.workDir.path, "output"))).toEqual(["ready"]);
    });

    test("is stopped once, however often it is asked for", async (context) => {
      const backend = await open(create, context);
      const { execution } = await startReady(
        backend,
        `trap 'exit 9' TERM; ${sayReady}; ${waitForever}`,
      );
      const reports = await Promise.all([5_000, 5_000].map((graceMs) => execution.stop(graceMs)));
      reports.push(await execution.exited);
      expect(reports.map(({ exitCode }) => exitCode)).toEqual([9, 9, 9]);
    });

    test("is killed in its grace when somebody comes who gives it none", async (context) => {
      const backend = await open(create, context);
      const { sandbox, execution } = await startReady(
        backend,
        `trap 'echo > output/asked' TERM; ${sayReady}; ${waitForever}`,
      );
      const stopped = execution.stop(600_000);
      await left(sandbox, "asked");
      const killed = { exitCode: undefined, signal: "SIGKILL" };
      expect(await execution.stop(0)).toMatchObject(killed);
      expect(await stopped).toMatchObject(killed);
    });

    test("after its end has its report", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell("exit 4"));
      await execution.exited;
      expect(await execution.stop(0)).toMatchObject({ exitCode: 4 });
    });

    test("for a limit is killed, and its report names the limit that was reached first", async (context) => {
      const backend = await open(create, context);
      const { marker, command } = uniqueSleep();
      const { execution } = await startReady(
        backend,
        `trap '' TERM; ${command} & ${sayReady}; ${waitForever}`,
      );
      const first = { limit: "diskBytes", bound: 10, peak: 11 } as const;
      execution.end(first);
      execution.end({ limit: "statusBytes", bound: 1, peak: 2 });
      expect(await execution.exited).toMatchObject({ exceeded: first, exitCode: undefined });
      expect(await processesWith(marker)).toBe(0);
    });

    test("for a limit after its end has ended by itself", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell("exit 4"));
      await execution.exited;
      execution.end({ limit: "diskBytes", bound: 10, peak: 11 });
      expect(await execution.exited).toMatchObject({ exitCode: 4, exceeded: undefined });
    });
  });
}

function describeEnd(create: Create): void {
  describe("when a command is reported as ended, nothing of it lives", () => {
    const ways: readonly (readonly [string, (command: string) => string])[] = [
      ["a child in the background", (command) => `${command} &`],
      ["a child in a session of its own", (command) => `setsid ${command} &`],
      [
        "a child of nobody, elsewhere, that holds nothing",
        (command) => `(cd /; setsid ${command} < /dev/null > /dev/null 2>&1 &) &`,
      ],
      [
        "a child with another environment",
        (command) => `env -i setsid /bin/sh -c 'cd /; ${command}; :' &`,
      ],
      [
        "a child that ignores every signal it can",
        (command) => `(trap '' TERM HUP INT; ${command}; ${waitForever}) &`,
      ],
    ];

    test.for(ways)("%s", async ([, start], context) => {
      const backend = await open(create, context);
      for (let runNumber = 0; runNumber < 10; runNumber++) {
        const { marker, command } = uniqueSleep();
        await using sandbox = await backend.acquire(request(), never);
        const execution = await sandbox.start(
          shell(`${start(command)} while [ ! -e output/go ]; do sleep 0.01; done; exit 7`),
        );
        await runs(command);
        await writeFile(join(sandbox.workDir.path, "output", "go"), "");
        const { exitCode } = await execution.exited;
        expect(await processesWith(marker)).toBe(0);
        expect(exitCode).toBe(7);
      }
    });

    test.for([0, 200])(
      "a child in a session of its own, after a stop with %d ms",
      async (graceMs, context) => {
        const backend = await open(create, context);
        const { marker, command } = uniqueSleep();
        const { execution } = await startReady(
          backend,
          `setsid ${command} & ${sayReady}; ${waitForever}`,
        );
        await runs(command);
        await execution.stop(graceMs);
        expect(await processesWith(marker)).toBe(0);
      },
    );
  });
}

function describePlaces(create: Create): void {
  describe("the places of a sandbox", () => {
    test("are the work directory that the worker sees, to begin with", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      {
        await using input = await sandbox.workDir.create("input", "data.txt");
        await input.writeFile("from the worker");
      }
      const { exitCode, stdout } = await runIn(
        sandbox,
        "pwd -P; cat input/data.txt > output/copy.txt",
      );
      expect(exitCode).toBe(0);
      expect(stdout.text.trim()).toBe(sandbox.locate(insidePaths.work));
      const { files } = await sandbox.workDir.leftOutputs(10);
      await using copy = files[0]!.handle;
      expect(await copy.readFile("utf8")).toBe("from the worker");
    });

    test("are what is mounted, by the name inside on command line and in environment", async (context) => {
      const backend = await open(create, context);
      const source = await directoryWith(backend, "module.py", "VERSION = 1\n");
      const mounts = [{ source, target: insidePaths.pythonTools }];
      const environment = new Map([
        ["PATH", "/usr/bin:/bin"],
        ["PYTHONPATH", `/nowhere:${insidePaths.pythonTools}`],
      ]);
      await using sandbox = await backend.acquire(request({ mounts, environment }), never);
      const execution = await sandbox.start({
        argv: [
          "/bin/sh",
          "-c",
          'cat "$1" "${PYTHONPATH#*:}/module.py"',
          "sh",
          `${insidePaths.pythonTools}/module.py`,
        ],
      });
      const { stdout, stderr } = await execution.exited;
      expect(stderr.text).toBe("");
      expect(stdout.text).toBe("VERSION = 1\nVERSION = 1\n");
    });

    test("are told by the sandbox, for whoever writes them into a file", async (context) => {
      const backend = await open(create, context);
      const source = await directoryWith(backend, "main.js", "// runner\n");
      await mkdir(join(source, "within"));
      const other = await directoryWith(backend, "main.js", "// within\n");
      const mounts = [
        { source, target: insidePaths.runner },
        { source: other, target: `${insidePaths.runner}/within` },
      ];
      await using sandbox = await backend.acquire(request({ mounts }), never);
      const located = sandbox.locate(`${insidePaths.runner}/main.js`);
      const within = sandbox.locate(`${insidePaths.runner}/within/main.js`);
      const { stdout } = await runIn(sandbox, `cat '${located}' '${within}'`);
      expect(stdout.text).toBe("// runner\n// within\n");
      expect(sandbox.locate("/usr/bin/env")).toBe("/usr/bin/env");
    });

    test("are what was shared, also from where only the worker reads", async (context) => {
      const backend = await open(create, context);
      const directory = await directoryWith(backend, "private.txt", "shared\n");
      await chmod(directory, 0o700);
      await using shared = await backend.share(directory);
      const mounts = [{ source: shared.source, target: insidePaths.nodeTools }];
      await using sandbox = await backend.acquire(request({ mounts }), never);
      const path = sandbox.locate(`${insidePaths.nodeTools}/private.txt`);
      expect(await runIn(sandbox, `cat '${path}'`)).toMatchObject({ stdout: { text: "shared\n" } });
    });

    test("are a status pipe that the worker reads", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      const statuses: string[] = [];
      using channel = await openStatusChannel(sandbox.workDir.statusPipe, (text) => {
        statuses.push(text);
      });
      const pipe = sandbox.locate(`${insidePaths.work}/${workDirNames.status}`);
      await runIn(sandbox, `echo '{"status": "half way"}' > '${pipe}'`);
      channel.finish();
      expect(statuses).toEqual(["half way"]);
    });

    test("are removed when it is given back, and all others with the backend", async (context) => {
      const backend = await create(context);
      const base = join(backend.scratchDir, "..");
      const sandbox = await backend.acquire(request(), never);
      await runIn(sandbox, "mkdir -p output/a/b; chmod 0 output/a; echo > output/x");
      await sandbox[Symbol.asyncDispose]();
      await vi.waitFor(
        () => expect(stat(sandbox.workDir.path)).rejects.toThrow("ENOENT"),
        patience,
      );
      await backend[Symbol.asyncDispose]();
      expect(await readdir(base)).toEqual([]);
    });
  });
}

function describeReports(create: Create, { isolates }: SandboxBackendTraits): void {
  const mechanisms: readonly unknown[] = ["kernel", "guard", "none"];

  describe("what is told", () => {
    test("of every profile, before there is a sandbox: technology, who keeps what, what is not kept", async (context) => {
      const backend = await open(create, context);
      for (const profile of builtInProfiles.values()) {
        const { technology, enforcement, unenforced, clamped } = backend.facts(profile);
        expect(technology).not.toBe("");
        expect(Object.keys(enforcement).sort()).toEqual([...limitNames].sort());
        expect(unenforced.includes("isolation")).toBe(!isolates);
        for (const limit of clamped) expect(limitNames).toContain(limit);
      }
    });

    test("of a sandbox: who keeps each limit, and what is not kept", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      expect(Object.keys(sandbox.enforcement).sort()).toEqual([...limitNames].sort());
      for (const mechanism of Object.values(sandbox.enforcement))
        expect(mechanisms).toContain(mechanism);
      const { unenforced } = backend.facts(restrictiveProfile);
      for (const gap of sandbox.unenforced) expect(unenforced).toContain(gap);
      expect(sandbox.unenforced.includes("isolation")).toBe(!isolates);
    });

    test("of a command: how long it ran, and nothing that nobody measured", async (context) => {
      const backend = await open(create, context);
      const { usage, exceeded } = await run(backend, "sleep 0.2");
      expect(exceeded).toBeUndefined();
      const { wallMs, ...measured } = usage;
      expect(wallMs).toBeGreaterThanOrEqual(200);
      expect(wallMs).toBeLessThan(10_000);
      for (const value of Object.values(measured))
        if (value !== undefined) expect(value).toBeGreaterThanOrEqual(0);
    });
  });
}

function describeSandboxes(create: Create, { isolates }: SandboxBackendTraits): void {
  describe("a sandbox", () => {
    test("is used once", async (context) => {
      const backend = await open(create, context);
      await using sandbox = await backend.acquire(request(), never);
      await runIn(sandbox, "exit 0");
      await expect(sandbox.start({ argv: ["/bin/true"] })).rejects.toThrow(SandboxError);
    });

    test("is not made for somebody who has given up", async (context) => {
      const backend = await open(create, context);
      const reason = new Error("gone");
      await expect(backend.acquire(request(), AbortSignal.abort(reason))).rejects.toBe(reason);
    });

    test("is not made by a backend that is closed", async (context) => {
      const backend = await create(context);
      await backend[Symbol.asyncDispose]();
      await expect(backend.acquire(request(), never)).rejects.toThrow(SandboxError);
    });

    test("runs beside others, each in a work directory of its own", async (context) => {
      const backend = await open(create, context);
      const numbers = [1, 2, 3, 4, 5, 6];
      const reports = await Promise.all(
        numbers.map((number) => run(backend, `echo ${number} > output/n; sleep 0.1; cat output/n`)),
      );
      expect(reports.map(({ stdout }) => Number(stdout.text))).toEqual(numbers);
    });

    test("sees nothing of another, nor of the host's processes", async (context) => {
      context.skip(!isolates, "this backend isolates nothing");
      const backend = await open(create, context);
      const { marker, command } = uniqueSleep();
      const neighbour = await startReady(
        backend,
        `echo secret > output/note; ${sayReady}; ${command}`,
      );
      const note = join(neighbour.sandbox.workDir.path, "output", "note");
      const script = `cat '${note}'; kill -0 ${process.pid}; cat /proc/[0-9]*/cmdline`;
      const { stdout } = await run(backend, script);
      expect(stdout.text).not.toContain("secret");
      expect(stdout.text).not.toContain(marker);
      expect(await run(backend, `kill -0 ${process.pid}`)).toMatchObject({ exitCode: 1 });
    });

    test("that is given back takes what still runs in it along, and its work directory", async (context) => {
      const backend = await open(create, context);
      const { marker, command } = uniqueSleep();
      const sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell(`trap '' TERM; ${command} & ${command}`));
      await runs(command);
      await sandbox[Symbol.asyncDispose]();
      expect(await processesWith(marker)).toBe(0);
      expect(await execution.exited).toMatchObject({ started: true, signal: "SIGKILL" });
      await vi.waitFor(
        () => expect(stat(sandbox.workDir.path)).rejects.toThrow("ENOENT"),
        patience,
      );
    });

    test("that is given back as soon as it was started leaves no process, in 10 runs", async (context) => {
      const backend = await open(create, context);
      const { marker, command } = uniqueSleep();
      const executions: Execution[] = [];
      for (let runNumber = 0; runNumber < 10; runNumber++) {
        await using sandbox = await backend.acquire(request(), never);
        executions.push(await sandbox.start(shell(command)));
      }
      await Promise.all(executions.map(({ exited }) => exited));
      await vi.waitFor(async () => expect(await processesWith(marker)).toBe(0), patience);
    });

    test("leaves no descriptor and no zombie behind, used or not", async (context) => {
      const backend = await open(create, context);
      const { command } = uniqueSleep();
      await run(backend, "exit 0");
      const before = (await readdir("/proc/self/fd")).length;
      for (let runNumber = 0; runNumber < 10; runNumber++) {
        await run(backend, `${command} & exit ${runNumber % 2}`);
        await (await backend.acquire(request(), never))[Symbol.asyncDispose]();
      }
      // Fewer, where the first count met one that was about to be closed.
      await vi.waitFor(
        async () => expect((await readdir("/proc/self/fd")).length).toBeLessThanOrEqual(before),
        patience,
      );
      expect(await ownZombies()).toEqual([]);
    });
  });
}

/** Ended children of this process that nobody has waited for. */
async function ownZombies(): Promise<string[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(
    ids.map((id) => readFile(`/proc/${id}/stat`, "utf8").catch(() => "")),
  );
  return stats.filter((line) => {
    const [state, parent] = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return state === "Z" && Number(parent) === process.pid;
  });
}
