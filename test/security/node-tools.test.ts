/**
 * What is different for a tool written for Node: its program, its tools' directory, its compiled
 * code, its memory.
 */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { proxyVariables } from "../../worker/egress/http-proxy.ts";
import { testPerProfile } from "../support/sandboxes/per-profile.ts";
import { type Rig, nodeTool, nodeToolPerProfile, startRig } from "../support/workers/rig.ts";

/** Modules of the rig: each is compiled ahead. */
const modules = 6;
const secret = "s3cr3t-marker";

/**
 * Sends itself the signal for a debugger, then the same to a Node that heeds it, and looks when
 * that one's debugger is open: nothing tells that a signal has had no effect.
 */
const signals = `
import { spawn } from "node:child_process";
import { once } from "node:events";
import inspector from "node:inspector";
export const run = async () => {
  process.kill(process.pid, "SIGUSR1");
  const child = spawn(process.execPath, ["--inspect-port=0", "-e", "console.log('ready'); setInterval(() => {}, 1e6)"]);
  await once(child.stdout, "data");
  child.kill("SIGUSR1");
  const [said] = await once(child.stderr, "data");
  child.kill("SIGKILL");
  return { debugger: inspector.url() ?? null, other: String(said).includes("Debugger listening") };
};
`;

/** Does what tools do beyond reading and writing, and tells what it gave. */
const works = `
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { Worker } from "node:worker_threads";

// Exports a memory of one page, and a function that adds two numbers.
const adder = Buffer.from(
  "0061736d0100000001070160027f7f017f030201000503010001070d02036d656d02000361646400000a09010700200020016a0b",
  "hex",
);
const inThread =
  "const { parentPort, workerData } = require('node:worker_threads');" +
  "Atomics.add(workerData, 0, 7); parentPort.postMessage('said');";

async function thread() {
  const shared = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(inThread, { eval: true, workerData: shared });
  // One that is quick ends in the moment in which its message comes.
  const ended = once(worker, "exit");
  const [said] = await once(worker, "message");
  await ended;
  return said + shared[0];
}

async function child() {
  const [code] = await once(spawn(process.execPath, ["-e", "process.exit(7)"]), "exit");
  return code;
}

async function webAssembly() {
  const { instance } = await WebAssembly.instantiate(adder);
  instance.exports.mem.grow(1);
  return [instance.exports.add(3, 4), instance.exports.mem.buffer.byteLength];
}

export const run = async () => ({
  thread: await thread(),
  child: await child(),
  shell: execFileSync("/bin/sh", ["-c", "echo one | tr o 0"], { encoding: "utf8" }),
  webAssembly: await webAssembly(),
});
`;

/** Leaves word of where it was run: when it is imported, and when it is called. */
const leavesWord = `
import fs from "node:fs";
const places = ["/tmp", "/dev/shm", "/sandbox/work", "/sandbox/work/output", "/tools/node", "/sandbox/compile-cache"];
const found = places.flatMap((place) => {
  try { return fs.readdirSync(place).filter((name) => name.startsWith("word")).map((name) => place + "/" + name); } catch { return []; }
});
for (const place of places) try { fs.writeFileSync(place + "/word", "left"); } catch {}
export const run = () => ({ found, cached: fs.existsSync("/sandbox/compile-cache") });
`;

describe("a Node tool", () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({
      tools: {
        ...nodeToolPerProfile("looks.ts", "around"),
        ...nodeToolPerProfile("looks.ts", "writes"),
        ...nodeToolPerProfile("works.js", "run"),
        cached: nodeTool("looks.ts", "cached"),
        other_cached: nodeTool("copy-of-looks.ts", "cached"),
        leaves_word: nodeTool("leaves-word.js", "run"),
        signals: nodeTool("signals.js", "run"),
        children: nodeTool("hungry.ts", "children", { sandbox_profile: "restrictive" }),
      },
      environment: { RIG_SECRET: secret, NODE_OPTIONS: "--no-warnings" },
      nodeFiles: {
        "leaves-word.js": leavesWord,
        "signals.js": signals,
        "works.js": works,
        "copy-of-looks.ts": await readFile(
          new URL("../fixtures/tools-node/looks.ts", import.meta.url),
          "utf8",
        ),
      },
    });
    await vi.waitFor(
      () =>
        expect(rig.logLines.filter((line) => line.includes("module.compiled"))).toHaveLength(
          modules,
        ),
      { timeout: 30_000 },
    );
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function result<T>(tool: string, args = {}): Promise<T> {
    const answer = await rig.call(tool, args, { toolConfig: { token: secret } });
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    return answer.toolResult as T;
  }

  testPerProfile(
    "finds nothing of the worker in any environment, and of its program's place the program alone, under %s",
    { tags: "promise-S12" },
    async (profile) => {
      const view = await result<{
        env: Record<string, string>;
        environments: string[];
        interpreter: string[] | string;
        sandbox: string[];
        tools: string[];
      }>(`around_${profile}`);
      const own = Object.keys(view.env).filter((name) => !proxyVariables.has(name));
      expect(own.sort()).toEqual(["HOME", "LANG", "NODE_COMPILE_CACHE", "PATH", "PWD", "TMPDIR"]);
      // bubblewrap's first process and the runner.
      expect(view.environments).toHaveLength(2);
      expect(JSON.stringify(view)).not.toContain(secret);
      expect(["ENOENT", ["node"]]).toContainEqual(view.interpreter);
      expect(view.sandbox.filter((name) => name !== "interpreter")).toEqual([
        "compile-cache",
        "runner",
        "work",
      ]);
      expect(view.tools).toEqual(["node", "node_modules"]);
    },
  );

  testPerProfile(
    "changes neither its tools, the runner, its program nor its compiled code, under %s",
    { tags: "promise-S13" },
    async (profile) => {
      const places = [
        "/tools",
        "/tools/node",
        "/tools/node_modules/secure-tool-runtime",
        "/sandbox/runner",
        "/sandbox/compile-cache",
        "/usr/bin",
      ];
      const outcomes = await result<Record<string, { created: string; changed: string[] }>>(
        `writes_${profile}`,
        { places },
      );
      for (const place of places) {
        expect([place, outcomes[place]!.created]).toEqual([place, "EROFS"]);
        // Of another user's files permission is looked at first.
        const refusals = ["EROFS", "EACCES"];
        const others = outcomes[place]!.changed.filter((outcome) => !refusals.includes(outcome));
        expect([place, others]).toEqual([place, []]);
      }
      expect(outcomes["/sandbox/compile-cache"]!.changed).not.toEqual([]);
    },
  );

  testPerProfile("does all that tools do under %s", { tags: "promise-S19" }, async (profile) => {
    expect(await result(`run_${profile}`)).toEqual({
      thread: "said7",
      child: 7,
      shell: "0ne\n",
      webAssembly: [7, 131_072],
    });
  });

  test("gets compiled code of its own module only", { tags: "promise-C2" }, async () => {
    const own = await result<{ files: string[] }>("cached");
    const other = await result<{ files: string[] }>("other_cached");
    expect(own.files.length).toBeGreaterThan(5);
    // The same program in another file: the files are named by the module's place.
    const names = (files: string[]) => new Set(files.filter((file) => file.includes("/")));
    const difference = names(own.files).difference(names(other.files));
    expect(difference.size).toBeGreaterThan(1);
    expect(names(other.files).difference(names(own.files)).size).toBe(difference.size);
  });

  test(
    "finds nothing that the run which compiled it has left, nor an earlier call",
    { tags: "promise-C2" },
    async () => {
      for (let call = 0; call < 2; call++) {
        expect(await result("leaves_word")).toEqual({ found: [], cached: true });
      }
    },
  );

  test(
    "is ended when all its processes together hold more than its profile allows",
    { tags: "promise-E1" },
    async () => {
      expect(await rig.call("children", { count: 2 })).toMatchObject({
        kind: "error",
        code: "EXECUTION_ERROR",
        message: "Tool needs more memory than its sandbox may use",
      });
    },
  );

  test("opens no debugger on the host's network by a signal", { tags: "promise-S13" }, async () => {
    expect(await result("signals")).toEqual({ debugger: null, other: true });
  });
});
