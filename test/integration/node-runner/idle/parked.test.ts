/**
 * `--park`: a runner that loads its tool before there is a call. What it does with the call:
 * parked-as-cold.test.ts.
 */
import { once } from "node:events";
import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { CallEnd } from "../../../../worker/sandbox/bubblewrap/idle/call-end.ts";
import { isFilteredArch } from "../../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import {
  type ToolRun,
  channelFd,
  removeWorkDirs,
  runToolWith,
  callOf,
  policyOf,
  startParked,
} from "../../tool-runner/run-tool.ts";
import { forkCommand, main, parkCommand, toolsDirectory } from "../run-node-tool.ts";

afterAll(removeWorkDirs);

/**
 * A runner that has loaded a module with this text, or said why not, in an empty work directory.
 */
async function parkModule(source: string | undefined, workDir?: string, park = parkCommand) {
  const toolsDir = await toolsDirectory(source === undefined ? {} : { "tool.mjs": source });
  const argsFile = join(workDir ?? toolsDir, "runner_args.json");
  const command = [...park, "tool.mjs", toolsDir, argsFile];
  const { child, line } = await startParked(command, workDir ?? toolsDir);
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = Promise.all([once(child, "exit"), text(child.stdout), text(child.stderr)]);
  const channel = child.stdio[channelFd] as unknown as Duplex;
  return { child, channel, line, ended, toolsDir };
}

/** A directory that the runner is in. Removed after the test. */
async function emptyDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "parked-")));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/**
 * A call of what a module with this text exports, by a runner that was started for it, and by one
 * that had waited.
 */
async function coldAndParked(
  source: string,
  { file = "tool.mjs", name = "run" } = {},
): Promise<readonly [cold: object, parked: object]> {
  const toolsDir = await toolsDirectory({ [file]: source });
  const call = (park: object) =>
    runToolWith({ command: main, toolsDir, ...park }, file, name, { args: { a: 1 } });
  return [seen(await call({})), seen(await call({ park: parkCommand }))];
}

/** What a worker sees of a run. */
function seen(run: ToolRun): object {
  const { exitCode, signal, stdout, stderr, document, statusLines } = run;
  return { exitCode, signal, stdout, stderr, document, statusLines };
}

test("a runner in a child of a template interrupts nobody any more once it is done", async (context) => {
  context.skip(!isFilteredArch(process.arch), `there are no templates on ${process.arch}`);
  const source = "export const run = () => ({ pid: process.pid });";
  const { channel, toolsDir } = await parkModule(source, undefined, forkCommand);
  const result_file = join(toolsDir, "result.json");
  const files = { output_dir: toolsDir, result_file, tools_dir: toolsDir };
  const callEnd = new CallEnd(channel, Infinity);
  channel.write(callOf(JSON.stringify({ module: "tool.mjs", function: "run", ...files })));
  await Promise.race([callEnd.done, once(channel, "close")]);
  const { result } = JSON.parse(String(callEnd.result)) as { readonly result: { pid: number } };
  expect(policyOf(result.pid)).toBe("SCHED_BATCH");
  channel.destroy();
});

describe("a runner that waits for its call", () => {
  test("has imported the module, says so in one line, and has written nothing", async () => {
    const workDir = await emptyDirectory();
    const { channel, line, ended } = await parkModule("console.log('imported')", workDir);
    expect(line).toBe('{"ready":true}\n');
    expect(await readdir(workDir)).toEqual([]);
    channel.end();
    expect(await ended).toEqual([[0, null], "imported\n", ""]);
  });

  test.for([["an end of file", ""] as const, ["another line", "exit\n"] as const])(
    "ends at %s, and runs nothing of the tool",
    async ([, bytes]) => {
      const source = `
        process.on("exit", () => console.log("told of its end"));
        export const run = () => console.log("called");`;
      const { channel, ended } = await parkModule(source);
      channel.end(bytes);
      expect(await ended).toEqual([[0, null], "", ""]);
    },
  );

  test("does nothing of the module's", async () => {
    const source = `
      let ticks = 0;
      setInterval(() => { ticks += 1; }, 1).unref();
      const { promise, resolve } = Promise.withResolvers();
      setTimeout(resolve, 100);
      await promise;
      const before = ticks;
      export const run = () => ({ before, ticks });`;
    const toolsDir = await toolsDirectory({ "tool.mjs": source });
    const run = await runToolWith(
      { command: main, toolsDir, park: parkCommand, waitMs: 300 },
      "tool.mjs",
      "run",
      {},
    );
    const { before, ticks } = run.document?.["result"] as { before: number; ticks: number };
    expect(before).toBeGreaterThan(0);
    expect(ticks - before).toBeLessThan(100);
  });

  test("has no socket of the worker's when it is called but the wake channel", async () => {
    const source = `
      import { readdirSync, readlinkSync } from "node:fs";
      const links = () => readdirSync("/proc/self/fd").flatMap((name) => {
        try { return Number(name) < 3 ? [] : [readlinkSync("/proc/self/fd/" + name)]; } catch { return []; }
      });
      export const run = () => ({ sockets: links().filter((link) => link.startsWith("socket:")) });`;
    const [cold, parked] = await coldAndParked(source);
    expect(cold).toMatchObject({ document: { result: { sockets: [] } } });
    const sockets = [expect.stringMatching(/^socket:/)];
    expect(parked).toMatchObject({ document: { result: { sockets } } });
  });

  test("has its timers begin with the call", async () => {
    const source = `
      export const run = async () => {
        const startMs = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 100));
        return { waited: performance.now() - startMs };
      };`;
    const toolsDir = await toolsDirectory({ "tool.mjs": source });
    const runner = { command: main, toolsDir, park: parkCommand, waitMs: 500 };
    const run = await runToolWith(runner, "tool.mjs", "run", {});
    const { waited } = run.document?.["result"] as { waited: number };
    expect(waited).toBeGreaterThan(98);
  });

  test("imports a module once", async () => {
    const source =
      "globalThis.imports = (globalThis.imports ?? 0) + 1; export const run = () => imports;";
    const [cold, parked] = await coldAndParked(source);
    expect(parked).toEqual(cold);
    expect(parked).toMatchObject({ document: { result: { text: "1" } } });
  });

  test("still calls what the arguments name, should that be another module", async () => {
    const toolsDir = await toolsDirectory({
      "tool.mjs": "export const run = () => 'parked';",
      "other.mjs": "export const run = () => 'named';",
    });
    const runner = { command: main, toolsDir, park: parkCommand };
    const run = await runToolWith(runner, "tool.mjs", "run", { members: { module: "other.mjs" } });
    expect(run.document).toMatchObject({ result: { text: "named" } });
  });

  test("needs arguments that can be used, as any does", async () => {
    const { channel, ended } = await parkModule("process.exitCode = 7;");
    channel.end(callOf("[]"));
    const [exit, , stderr] = await ended;
    expect(exit).toEqual([1, null]);
    const complaint =
      "the runner arguments cannot be used: TypeError: the file must hold an object";
    expect(stderr).toMatch(new RegExp(`^tool_runner: ${complaint}`));
  });
});

describe("a module is loaded by its call where", () => {
  type UnfitCase = [what: string, source: string | undefined, reason: string];

  const usualUnfit: readonly UnfitCase[] = [
    ["its import throws", "throw new Error('no config')", "its import fails: Error: no config"],
    ["its import ends the process", "process.exit(0)", "it ends the process"],
    ["its import never ends", "await new Promise(() => {})", "its top-level await never ends"],
    [
      "its import leaves a timer",
      "setInterval(() => {}, 60_000)",
      "it leaves something running: Timeout",
    ],
  ];
  const otherUnfit: readonly UnfitCase[] = [
    ["it is not there", undefined, "its import fails: Error: Cannot find module "],
    ["it is no JavaScript", "export const run = 1+;", "its import fails: SyntaxError: "],
    ["its import throws what is no error", "throw null", "its import fails: null"],
    [
      "something fails that its import has begun",
      "setTimeout(() => { throw new Error('late') })",
      "it ends the process",
    ],
    [
      "a rejection is handled by nobody",
      "Promise.reject(new Error('lost'))",
      "it ends the process",
    ],
    [
      "its import leaves a server",
      "import { createServer } from 'node:net'; createServer().listen(0)",
      "it leaves something running: TCPServerWrap",
    ],
    [
      "its import leaves a worker thread",
      "import { Worker } from 'node:worker_threads'; new Worker('setInterval(() => {}, 1000)', { eval: true })",
      "it leaves something running: ",
    ],
    [
      "its import leaves a process",
      "import { spawn } from 'node:child_process'; spawn('/bin/sleep', ['5'], { stdio: 'ignore' })",
      "it leaves something running: ProcessWrap",
    ],
    [
      "it would take the waiting for the end",
      "process.on('beforeExit', () => {})",
      'it listens for "beforeExit"',
    ],
    [
      "the runner cannot work any more",
      "Map.prototype.set = undefined",
      "the runner cannot work beside it: TypeError: ",
    ],
  ];
  const showUnfit = async ([, source, reason]: UnfitCase) => {
    const { line, ended } = await parkModule(source);
    expect(JSON.parse(line)).toEqual({ unfit: expect.stringContaining(reason) });
    const [exit] = await ended;
    expect(exit).toEqual([1, null]);
  };

  test.for(usualUnfit)("%s", showUnfit);
  test.for(otherUnfit)("%s", { tags: "full" }, showUnfit);

  test("the reason has its room in a line, whatever it consists of", async () => {
    const { line } = await parkModule("throw new Error('\\u0001'.repeat(100_000))");
    expect(line).toMatch(/^\{"unfit":"its import fails: Error: .*"\}\n$/);
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(4096);
  });
});

describe("is as if it had not waited:", () => {
  type SameCase = [what: string, source: string, options?: { file?: string; name?: string }];

  const usualSame: readonly SameCase[] = [
    [
      "standard input, at import and in the call",
      `import process, { stdin } from "node:process";
       import { readFileSync, readlinkSync } from "node:fs";
       import { execFileSync } from "node:child_process";
       const inherited = execFileSync("/bin/cat", { stdio: ["inherit", "pipe", "pipe"] }).length;
       const read = readFileSync(0).length;
       console.log("importing");
       export const run = async () => ({
         inherited, read, kind: stdin.constructor.name, link: readlinkSync("/proc/self/fd/0"),
         chunks: await process.stdin.toArray(),
       });`,
    ],
    [
      "exit handlers of the module",
      `process.exitCode = 5;
       process.on("exit", (code) => { console.log("exit", code); process.exit(3); });
       export const run = () => 1;`,
    ],
    ["process.exit in the call", "export const run = () => process.exit(4);"],
  ];
  const otherSame: readonly SameCase[] = [
    ["a function that is not there", "export const other = 1;"],
    ["what is no function", "export const run = 1;"],
    [
      "a CommonJS module",
      "module['exports'] = { ['r' + 'un']: () => 'found' };",
      { file: "a.cjs" },
    ],
    ["TypeScript", "export const run = (args: { a: number }): number => args.a;", { file: "a.ts" }],
    ["a module that is a promise", "export const then = (found) => found({ run: () => 1 });"],
    ["another name", "export { f as 'a name' }; const f = () => 1;", { name: "a name" }],
    [
      "what the import began and the call awaits",
      `import { readFile } from "node:fs/promises";
       const reading = readFile("/etc/passwd", "utf8");
       export const run = async () => (await reading).length > 0;`,
    ],
    [
      "exit handlers of the module, when the tool never ends",
      `process.on("exit", () => { console.log("exit"); process.exit(3); });
       export const run = () => new Promise(() => {});`,
    ],
    [
      "a listener for uncaught exceptions",
      `const caught = []; process.on("uncaughtException", (error) => caught.push(error.message));
       export const run = async () => {
         setTimeout(() => { throw new Error("late") });
         await new Promise((resolve) => setTimeout(resolve, 50));
         return { caught };
       };`,
    ],
    ["what the call leaves running", "export const run = () => { setInterval(() => {}, 100); };"],
    [
      "traces of the runner",
      "export const run = () => ({ argv: process.argv.slice(1), env: { ...process.env }, cwd: process.cwd() === process.env.PWD });",
    ],
    [
      "a module that leaves a server",
      `import { createServer } from "node:net";
       const server = createServer().listen(0);
       export const run = () => { server.close(); return { listening: server.listening }; };`,
    ],
  ];
  const showSame = async ([, source, options]: SameCase) => {
    const [cold, parked] = await coldAndParked(source, options);
    expect(parked).toEqual(cold);
  };

  test.for(usualSame)("%s", showSame);
  test.for(otherSame)("%s", { tags: "full" }, showSame);
});

describe("is as if it had not waited where the import changes", () => {
  type ChangedCase = [what: string, change: string];

  const usualChanged: readonly ChangedCase[] = [
    ["JSON", "globalThis.JSON = undefined"],
    ["process.exit", "process.exit = process.reallyExit = () => {}"],
  ];
  const otherChanged: readonly ChangedCase[] = [
    ["JSON.stringify", "JSON.stringify = () => { throw new Error('no') }"],
    ["Promise", "globalThis.Promise = class {}"],
    [
      "the timers",
      "globalThis.setTimeout = globalThis.setImmediate = () => { throw new Error('no') }",
    ],
    ["the console", "globalThis.console = undefined"],
    ["process", "globalThis.process = undefined"],
    ["process.emit", "process.removeAllListeners(); process.on = () => {}"],
    ["Buffer", "globalThis.Buffer = undefined"],
    ["Object and Array", "globalThis.Object = globalThis.Array = undefined"],
    [
      "Object.prototype",
      "for (const name of ['extra', 'encoding', 'flag', 'offset', 'length', 'position']) Object.prototype[name] = 1",
    ],
    ["Array.prototype", "Array.prototype.join = Array.prototype.push = undefined"],
    [
      "fs",
      `const fs = (await import("node:fs")).default;
       const { syncBuiltinESMExports } = await import("node:module");
       for (const name of ["openSync", "readSync", "writeSync", "renameSync", "unlinkSync", "readFileSync"]) fs[name] = () => { throw new Error("no") };
       syncBuiltinESMExports()`,
    ],
    ["the current directory", "process.chdir('/')"],
  ];
  const showChanged = async ([, change]: ChangedCase) => {
    const source = `${change};
      export const run = (_args, ctx) => { ctx.sendStatus("sent"); return { list: [1, "two"] }; };`;
    const [cold, parked] = await coldAndParked(source);
    expect(cold).toMatchObject({ document: { result: { list: [1, "two"] } } });
    expect(parked).toEqual(cold);
  };

  test.for(usualChanged)("%s", showChanged);
  test.for(otherChanged)("%s", { tags: "full" }, showChanged);
});
