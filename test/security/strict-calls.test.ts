/**
 * The strict filter of system calls, as tools meet it by each start: no network calls, in Python no
 * new programs, and all else that tools are made of.
 */
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { type TestContext, describe, expect, test } from "vitest";
import { defaultGatewayLimits } from "../../worker/protocol/tool-calls/limits.ts";
import type { Profile } from "../../worker/sandbox/profile.ts";
import type { Launch, SandboxBackend } from "../../worker/sandbox/sandbox.ts";
import { runtimeSandboxProfiles } from "../../worker/wiring/runtime/profiles.ts";
import { sharedBackends } from "../integration/sandbox/sandbox-host.ts";
import { openToolStarts } from "../support/runners/tool-starts.ts";
import { tool } from "../unit/manifest/fixtures.ts";

const python = `
import asyncio, ctypes, errno, multiprocessing, os, socket, subprocess, sys, threading

def trial(attempt):
    try:
        return repr(attempt())
    except OSError as error:
        return errno.errorcode[error.errno]

def starts_program():
    child = os.fork()
    if child == 0:
        try:
            os.execv("/usr/bin/true", ["true"])
        except OSError as error:
            os._exit(error.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return errno.errorcode[status] if status else "started"

# What the import may do: in a template, its children inherit that.
at_import = starts_program()

def network():
    families = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
    pair, _ = socket.socketpair()
    return {
        "socket": sorted({trial(lambda: socket.socket(each, socket.SOCK_DGRAM)) for each in families}),
        "connect": trial(lambda: pair.connect("/tmp/socket")),
        "bind": trial(lambda: pair.bind("/tmp/socket")),
        "listen": trial(pair.listen),
    }

def in_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(starts_program()))
    thread.start()
    thread.join()
    return found[0]

def by_number(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.syscall(number, *arguments)
    return errno.errorcode.get(ctypes.get_errno(), "passed")

def programs(execveat, seccomp):
    return {
        "import": at_import,
        "fork": starts_program(),
        "execveat": by_number(execveat, -1, b"", None, None, 0),
        "thread": in_thread(),
        "subprocess": trial(lambda: subprocess.run(["/usr/bin/true"]).returncode),
        "posix_spawn": trial(lambda: os.posix_spawn("/usr/bin/true", ["true"], {})),
        "filter": by_number(seccomp, 1, 1, None),
    }

def square(value):
    return value * value

async def half(value):
    await asyncio.sleep(0.001)
    return value / 2

def calls(ctx):
    return dict(ctx.tools.sync.call("other:echo"))

def works():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        squares = pool.map(square, [1, 2, 3])
    with open("/tmp/file", "w") as file:
        file.write("text")
    argv = [sys.argv, getattr(sys, "orig_argv", [])]
    return {"squares": squares, "half": asyncio.run(half(4)), "hidden": "no-programs" not in str(argv)}
`;

const node = `
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { Worker } from "node:worker_threads";

const failure = async (emitter) => (await once(emitter, "error"))[0].code;

export async function network() {
  return {
    tcp: await failure(connect(1, "127.0.0.1")),
    local: await failure(connect("/tmp/socket")),
    listen: await failure(createServer().listen(0)),
    listenLocal: await failure(createServer().listen("/tmp/socket")),
  };
}

export async function works() {
  writeFileSync("/tmp/child.cjs", "process.send(8, () => process.disconnect())");
  const [fromChild] = await once(fork("/tmp/child.cjs"), "message");
  const code = "require('node:worker_threads').parentPort.postMessage(7)";
  const [fromThread] = await once(new Worker(code, { eval: true }), "message");
  return { fromChild, fromThread, program: execFileSync("/bin/echo", ["hi"], { encoding: "utf8" }) };
}
`;

const hardened = runtimeSandboxProfiles("bubblewrap", "filter").get("runtime-hardened")!;
const numbers =
  process.arch === "arm64" ? { execveat: 281, seccomp: 277 } : { execveat: 322, seccomp: 317 };
const openBubblewrap = sharedBackends();

interface Options {
  readonly runtime?: "python" | "node";
  readonly profile?: Profile;
  readonly args?: object;
  readonly hasGateway?: boolean;
}

const gateway = {
  ...{ tools: ["other:echo"], remote: [], limits: defaultGatewayLimits, isIdempotent: false },
};

/** Answers each call of a tool with the name of what it asked for. */
function answer(channel: Duplex | undefined): void {
  if (channel === undefined) return;
  createInterface({ input: channel }).on("line", (line) => {
    const { id, payload } = JSON.parse(line) as { id: string; payload: { id: string } };
    const answered = { structured: { asked: payload.id }, artifacts: [] };
    channel.write(`${JSON.stringify({ type: "response", id, payload: answered })}\n`);
  });
}

/** What a tool returns by a start. */
async function called(
  context: TestContext,
  start: "cold" | "pool" | "template",
  name: string,
  { runtime = "python", profile = hardened, args = {}, hasGateway = false }: Options = {},
) {
  const backend = await openBubblewrap(context);
  const files = { files: { "tool.py": python }, nodeFiles: { "tool.mjs": node } };
  const starts = await openToolStarts({ backend, profile, ...files });
  const entry = tool(name, {
    runtime,
    module: runtime === "node" ? "tool.mjs" : "tool",
    callable: { kind: "function", name },
    start,
    warm: { min: start === "cold" ? 0 : 1, max: 2 },
    ...(hasGateway && { gateway }),
  });
  starts.starts.follow([entry]);
  if (start !== "cold") await starts.untilIdle(entry);
  const { startMode, result } = await starts.call(entry, args, ({ execution }) =>
    answer(execution.gateway),
  );
  expect(startMode).toBe(start);
  return result;
}

function describePython(
  start: "cold" | "pool" | "template",
  options: { readonly tags: string | string[] },
): void {
  describe(`under hardened a Python tool that starts by ${start}`, options, () => {
    test("makes, connects, binds and awaits no socket", async (context) => {
      expect(await called(context, start, "network")).toEqual({
        ...{ socket: ["EPERM"], connect: "EPERM", bind: "EPERM", listen: "EPERM" },
      });
    });

    test("starts no program, neither by import, thread nor fork, and adds no filter", async (context) => {
      expect(await called(context, start, "programs", { args: numbers })).toEqual({
        ...{ import: "EPERM", fork: "EPERM", execveat: "EPERM", thread: "EPERM" },
        ...{ subprocess: "EPERM", posix_spawn: "EPERM", filter: "EINVAL" },
      });
    });

    test("calls tools by its gateway", async (context) => {
      const result = await called(context, start, "calls", { hasGateway: true });
      expect(result).toEqual({ asked: "other:echo" });
    });

    test("has asyncio, processes that it forks, and files", async (context) => {
      expect(await called(context, start, "works")).toEqual({
        ...{ squares: [1, 4, 9], half: 2, hidden: true },
      });
    });
  });
}

describePython("pool", { tags: "promise-S40" });
describePython("cold", { tags: ["full", "promise-S40"] });
describePython("template", { tags: ["full", "promise-S40"] });

function describeNode(start: "cold" | "pool", options: { readonly tags: string | string[] }): void {
  describe(`under hardened a Node tool that starts by ${start}`, options, () => {
    test("connects and listens nowhere", async (context) => {
      const refused = await called(context, start, "network", { runtime: "node" });
      expect(refused).toEqual({
        ...{ tcp: "EPERM", local: "EPERM", listen: "EPERM", listenLocal: "EPERM" },
      });
    });

    test("has threads, child processes and programs", async (context) => {
      const worked = await called(context, start, "works", { runtime: "node" });
      expect(worked).toEqual({ fromChild: 8, fromThread: 7, program: "hi\n" });
    });
  });
}

describeNode("pool", { tags: "promise-S40" });
describeNode("cold", { tags: ["full", "promise-S40"] });

test("under standard there are sockets and programs", async (context) => {
  const profile = runtimeSandboxProfiles("bubblewrap", "filter").get("runtime-standard")!;
  const made = (await called(context, "cold", "network", { profile })) as { socket: string[] };
  expect(made.socket).not.toContain("EPERM");
  expect(made).toMatchObject({ connect: "ENOENT", bind: "None" });
  const started = await called(context, "cold", "programs", { profile, args: numbers });
  expect(started).toMatchObject({
    ...{ import: "started", fork: "started", execveat: "ENOENT", thread: "started" },
    ...{ subprocess: "0", filter: "EINVAL" },
  });
});

test("a Python tool whose runner cannot add its filter does not run", async (context) => {
  const backend = await openBubblewrap(context);
  // The sandbox's own filter passes no further one to a launch that does not say so.
  const lacking: SandboxBackend = {
    scratchDir: backend.scratchDir,
    facts: (profile) => backend.facts(profile),
    share: (path) => backend.share(path),
    async acquire(request, signal) {
      const sandbox = await backend.acquire(request, signal);
      const start = sandbox.start.bind(sandbox);
      return Object.assign(sandbox, { start: ({ argv }: Launch) => start({ argv }) });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const files = { "tool.py": `print("imported", flush=True)\ndef works(): return {}` };
  const starts = await openToolStarts({ backend: lacking, profile: hardened, files });
  const entry = tool("works", { callable: { kind: "function", name: "works" }, start: "cold" });
  const call = starts.call({ ...entry, module: "tool" });
  await expect(call).rejects.toThrow(/"exitCode":1,.*"stdout":\{"text":"".*cannot be refused/);
});
