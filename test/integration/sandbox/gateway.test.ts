/**
 * The gateway's channel through a sandbox: bytes in both directions by each start, for the runner
 * alone, and gone with the sandbox.
 */
import { defaultGatewayLimits } from "../../../worker/protocol/tool-calls/limits.ts";
import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { openHost } from "../../../worker/sandbox/host/backend.ts";
import { type SandboxBackend, gatewayFd } from "../../../worker/sandbox/sandbox.ts";
import { inheritableDescriptors } from "../../../worker/support/inherited-descriptors.ts";
import { withGatewayByPath } from "../../support/sandboxes/gateway-by-path.ts";
import { patience } from "../../support/patience.ts";
import { type RunningCall, openToolStarts } from "../../support/runners/tool-starts.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import {
  backendOptions,
  openDescriptors,
  processesIn,
  requireRoot,
  sandboxUid,
  sharedBackends,
  temporaryDirectory,
} from "./sandbox-host.ts";

const source = `
import gc, os, subprocess, sys

def sockets():
    # But for stdout, stderr and the wake channel.
    wake = {str(each.descriptor) for each in gc.get_objects() if type(each).__name__ == "WakeChannel"}
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass
    return {name: to for name, to in found.items() if to.startswith("socket:") and int(name) > 2 and name not in wake}

def call(ctx, value):
    return dict(ctx.tools.sync.call("other:echo", {"value": value}))

async def awaits(ctx, value):
    return dict(await ctx.tools.other.echo(value=value))

def look(ctx):
    listing = "import os; print(*os.listdir('/proc/self/fd'))"
    command = [sys.executable, "-I", "-c", listing]
    listed = subprocess.run(command, close_fds=False, capture_output=True, text=True, check=True)
    return {"sockets": sockets(), "child": listed.stdout.split()}

def connects(ctx):
    before = os.path.exists("gateway.sock")
    dict(ctx.tools.sync.call("other:echo"))
    return {"before": before, "after": os.path.exists("gateway.sock"), **look(ctx)}

def shows(ctx):
    return dict(ctx.tools.sync.call("look", {"sockets": sockets()}))

def writes(ctx, inherited):
    (number,) = sockets().keys() - set(inherited)
    return {"written": os.write(int(number), b"x" * 10_000)}

def refused(ctx):
    from secure_tool_runtime import ToolCallError
    try:
        ctx.tools.sync.call("other")
    except ToolCallError as error:
        return {"code": error.code, "sockets": sockets()}
`;

const nodeSource = `
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";

export async function talk() {
  const channel = new Socket({ fd: ${gatewayFd} });
  channel.write("ping");
  const [heard] = await once(channel, "data");
  const child = execFileSync("/bin/ls", ["/proc/self/fd"], { encoding: "utf8" });
  channel.destroy();
  return { heard: String(heard), child: child.trim().split("\\n") };
}
`;

const nodePathSource = `
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readlinkSync } from "node:fs";

const linkOf = (name) => {
  try {
    return readlinkSync("/proc/self/fd/" + name);
  } catch {
    return "";
  }
};

export async function connects(_args, { tools }) {
  const before = existsSync("gateway.sock");
  await tools.call("other:echo", {});
  const after = existsSync("gateway.sock");
  const links = readdirSync("/proc/self/fd").map((name) => [name, linkOf(name)]);
  const isSocket = ([name, to]) => to.startsWith("socket:") && Number(name) > 2;
  const child = execFileSync("/bin/ls", ["/proc/self/fd"], { encoding: "utf8" }).trim();
  const sockets = Object.fromEntries(links.filter(isSocket));
  return { before, after, sockets, child: child.split("\\n") };
}
`;

const openBubblewrap = sharedBackends();

async function openOnHost(): Promise<SandboxBackend> {
  const backend = await openHost(backendOptions(join(await temporaryDirectory(), "work")));
  onTestFinished(() => backend[Symbol.asyncDispose]());
  return backend;
}

/** What this test's process has inherited, which only worker/main.ts closes. */
const inherited = new Set(inheritableDescriptors().map(String));
const withoutInherited = (found: Readonly<Record<string, string>>): string[] =>
  Object.keys(found).filter((name) => !inherited.has(name));

interface Request {
  readonly type: string;
  readonly id: string;
  readonly payload: { readonly id: string; readonly args: Record<string, unknown> };
}

/** Answers each request on a channel. */
function answer(gateway: Duplex | undefined, structured: (request: Request) => object): void {
  createInterface({ input: gateway! }).on("line", (line) => {
    const request = JSON.parse(line) as Request;
    const payload = { structured: structured(request), artifacts: [] };
    gateway!.write(`${JSON.stringify({ type: "response", id: request.id, payload })}\n`);
  });
}

const quickWays = ["template"] as const;
/** They pass the channel as a descriptor of the command. */
const otherWays = ["cold", "pool", "host"] as const;
type Way = (typeof quickWays | typeof otherWays)[number] | "path";

interface Options {
  readonly hasGateway?: boolean;
  readonly runtime?: "python" | "node";
}

async function open(
  context: TestContext,
  way: Way,
  name: string,
  { hasGateway = true, runtime = "python" }: Options = {},
) {
  const backend = await (way === "host" || way === "path" ? openOnHost() : openBubblewrap(context));
  const nodeFiles = { "tool.mjs": nodeSource, "path.mjs": nodePathSource };
  const starts = await openToolStarts({
    backend: way === "path" ? withGatewayByPath(backend, sandboxUid) : backend,
    ...{ files: { "tool.py": source }, nodeFiles },
  });
  const startMode = way === "host" || way === "path" ? "cold" : way;
  const entry = tool(name, {
    runtime,
    module: runtime === "python" ? "tool" : way === "path" ? "path.mjs" : "tool.mjs",
    callable: { kind: "function", name },
    start: startMode,
    warm: { min: startMode === "cold" ? 0 : 1, max: 2 },
    ...(hasGateway && {
      gateway: {
        tools: ["other:echo"],
        remote: [],
        limits: defaultGatewayLimits,
        isIdempotent: false,
      },
    }),
  });
  starts.starts.follow([entry]);
  const call = async (args: object, follow?: (running: RunningCall) => void) => {
    if (startMode !== "cold") await starts.untilIdle(entry);
    const called = await starts.call(entry, args, follow);
    expect(called.startMode).toBe(startMode);
    return called.result;
  };
  return { call, starts };
}

const withGateway = (way: Way): void => {
  test.for(["call", "awaits"])("a tool calls another one: %s", async (name, context) => {
    const { call } = await open(context, way, name);
    const text = "é".repeat(200_000);
    let gateway: Duplex | undefined;
    const result = await call({ value: text }, ({ execution }) => {
      gateway = execution.gateway;
      expect([gateway!.readableFlowing, gateway!.listenerCount("data")]).toEqual([false, 0]);
      answer(gateway, ({ payload }) => ({ twice: [payload.args["value"], payload.args["value"]] }));
    });
    expect(result).toEqual({ twice: [text, text] });
    await expect.poll(() => gateway!.destroyed).toBe(true);
  });

  test("no program that it starts inherits the channel, and it has one", async (context) => {
    const { call } = await open(context, way, "look");
    const { sockets, child } = (await call({})) as {
      sockets: Record<string, string>;
      child: string[];
    };
    const [number] = withoutInherited(sockets);
    expect(withoutInherited(sockets)).toHaveLength(1);
    // The listing of the child itself has a descriptor, too.
    const others = child.filter((name) => !inherited.has(name) && !["0", "1", "2"].includes(name));
    expect(others).toHaveLength(1);
    expect(child.includes(number!) && others[0] !== number).toBe(false);
  });

  test("no other process of the sandbox has it", async (context) => {
    requireRoot(context);
    context.skip(way === "host", "it has no other process");
    const { call } = await open(context, way, "shows");
    let workDir = "";
    const seen: Promise<string[][]>[] = [];
    await call({}, (running) => {
      workDir = running.workDir.path;
      const { gateway } = running.execution;
      createInterface({ input: gateway! }).on("line", (line) => {
        const { id, payload } = JSON.parse(line) as Request;
        const [target] = Object.values(payload.args["sockets"] as Record<string, string>);
        const holders = processesIn(workDir).then((ids) =>
          Promise.all(ids.map((pid) => holds(pid, target!))),
        );
        seen.push(holders);
        void holders.finally(() => {
          const answered = { type: "response", id, payload: { structured: {}, artifacts: [] } };
          gateway!.write(`${JSON.stringify(answered)}\n`);
        });
      });
    });
    const [processes] = await Promise.all(seen);
    expect(processes!.length).toBeGreaterThan(1);
    const holders = processes!.filter(([isHolder]) => isHolder === "holds");
    expect(holders).toHaveLength(1);
    expect(holders[0]![1]).not.toBe("1");
  });

  test("what nobody reads holds up no end", async (context) => {
    const { call } = await open(context, way, "writes");
    let gateway: Duplex | undefined;
    const args = { inherited: [...inherited] };
    const result = await call(args, ({ execution }) => (gateway = execution.gateway));
    expect(result).toEqual({ written: 10_000 });
    await expect.poll(() => gateway!.destroyed).toBe(true);
  });
};

describe.for(quickWays)("with a gateway, by the start %s,", withGateway);
describe.for(otherWays)("with a gateway, by the start %s,", { tags: "full" }, withGateway);

describe("with a gateway that the command connects to,", () => {
  const callsAnother = async (name: string, context: TestContext): Promise<void> => {
    const { call } = await open(context, "path", name);
    const text = "é".repeat(200_000);
    let gateway: Duplex | undefined;
    const result = await call({ value: text }, ({ execution }) => {
      gateway = execution.gateway;
      expect([gateway!.readableFlowing, gateway!.listenerCount("data")]).toEqual([false, 0]);
      answer(gateway, ({ payload }) => ({ twice: [payload.args["value"], payload.args["value"]] }));
    });
    expect(result).toEqual({ twice: [text, text] });
    await expect.poll(() => gateway!.destroyed).toBe(true);
  };
  test.for(["awaits"])("a tool calls another one: %s", callsAnother);
  test.for(["call"])("a tool calls another one: %s", { tags: "full" }, callsAnother);

  test.for(["python", "node"] as const)(
    "it is one connection, which no program inherits: %s",
    async (runtime, context) => {
      const { call } = await open(context, "path", "connects", { runtime });
      const { before, after, sockets, child } = (await call({}, ({ execution }) =>
        answer(execution.gateway, () => ({})),
      )) as { before: boolean; after: boolean; sockets: Record<string, string>; child: string[] };
      expect([before, after]).toEqual([true, false]);
      const [number] = withoutInherited(sockets);
      expect(withoutInherited(sockets)).toHaveLength(1);
      const others = child.filter(
        (name) => !inherited.has(name) && !["0", "1", "2"].includes(name),
      );
      expect(others).toHaveLength(1);
      expect(child.includes(number!) && others[0] !== number).toBe(false);
    },
  );

  test("a tool that calls none ends, and so does the channel", async (context) => {
    const { call } = await open(context, "path", "look");
    let gateway: Duplex | undefined;
    const { sockets } = (await call({}, ({ execution }) => {
      gateway = execution.gateway;
      gateway!.resume();
    })) as { sockets: Record<string, string> };
    expect(withoutInherited(sockets)).toEqual([]);
    await expect.poll(() => gateway!.destroyed).toBe(true);
  });
});

/** Whether a process has a socket open, and its number in its innermost pid namespace. */
async function holds(pid: number, target: string): Promise<string[]> {
  const names = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(
    names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")),
  );
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const number = /^NSpid:.*\s(\d+)$/m.exec(status)![1]!;
  return [targets.includes(target) ? "holds" : "", number];
}

const withoutGateway = (way: Way): void => {
  test("a tool has no channel, and is told so", async (context) => {
    const { call } = await open(context, way, "refused", { hasGateway: false });
    let gateway: unknown = "unknown";
    const result = await call({}, ({ execution }) => (gateway = execution.gateway));
    const { code, sockets } = result as { code: string; sockets: Record<string, string> };
    expect({ code, sockets: withoutInherited(sockets) }).toEqual({
      code: "NOT_ALLOWED",
      sockets: [],
    });
    expect(gateway).toBeUndefined();
  });
};
describe.for(quickWays)("without a gateway, by the start %s,", withoutGateway);
describe.for(["cold"] as const)(
  "without a gateway, by the start %s,",
  { tags: "full" },
  withoutGateway,
);

const nodeHasGateway = async (way: Way, context: TestContext): Promise<void> => {
  const { call } = await open(context, way, "talk", { runtime: "node" });
  const result = await call({}, ({ execution }) => {
    const { gateway } = execution;
    gateway!.on("data", (ping: Buffer) => gateway!.write(`${ping.toString()}, pong`)).resume();
  });
  const { heard, child } = result as { heard: string; child: string[] };
  expect(heard).toBe("ping, pong");
  expect(child).not.toContain(String(gatewayFd));
};
const ofNode = "a Node tool has a gateway, which no program inherits, by the start %s";
test.for(["pool"] as const)(ofNode, nodeHasGateway);
test.for(["cold", "host"] as const)(ofNode, { tags: "full" }, nodeHasGateway);

test.for(["pool", "template"] as const)(
  "idle sandboxes with a gateway leave no descriptor: %s",
  { tags: "full" },
  async (way, context) => {
    const idleAndGone = async () => {
      const { starts } = await open(context, way, "call");
      await starts.untilIdle(tool("call"));
      await starts.starts[Symbol.asyncDispose]();
    };
    // The first one opens what stays.
    await idleAndGone();
    const before = await openDescriptors();
    for (let round = 0; round < 3; round++) await idleAndGone();
    const settled = async () => expect(await openDescriptors()).toBeLessThan(before + 3);
    await vi.waitFor(settled, patience);
  },
);
