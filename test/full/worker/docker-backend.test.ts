/**
 * Tools of a worker in containers of Docker's daemon: Python, Node and programs, which call each
 * other.
 *
 * @module-tag full
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../../integration/sandbox/sandbox-host.ts";
import { openDockerd } from "../../support/containers/daemon.ts";
import { shared } from "../../support/shared.ts";
import { nodeTool, startRig } from "../../support/workers/rig.ts";

const daemon = shared(openDockerd);

const profiles = JSON.stringify({
  version: 1,
  profiles: {
    contained: { extends: "restrictive", backend: "docker", limits: { cpus: 2 } },
  },
});

const files = {
  "calls.py": `
import os, socket

def add(a: int, b: int):
    return {"sum": a + b, "host": socket.gethostname(), "uid": os.getuid()}

def asks(ctx, a: int, b: int):
    ctx.send_status("asking")
    ctx.save_artifact("sum.txt", b"a sum")
    return {"answers": [dict(ctx.tools.sync.call("add", {"a": a, "b": b})) for _ in range(2)]}
`,
};
const nodeFiles = {
  "asks.js": `
import { hostname } from "node:os";

export async function asks({ a, b }, { tools }) {
  return { answer: await tools.call("add", { a, b }), host: hostname() };
}
`,
};

async function open(context: TestContext) {
  const { socket } = await daemon(context);
  const profilesFile = join(await temporaryDirectory(), "profiles.yaml");
  await writeFile(profilesFile, profiles);
  const more = { sandbox_profile: "contained", gateway: { tools: ["add"] } } as const;
  const rig = await startRig({
    tools: {
      add: {
        ...{ module: "calls", function: "add", sandbox_profile: "contained" },
        allowed_callers: ["direct", "programmatic"],
      },
      online: { module: "calls", function: "add", sandbox_profile: "contained", network: "public" },
      python_asks: { module: "calls", function: "asks", ...more },
      node_asks: nodeTool("asks.js", "asks", more),
      run: { runtime: "code", ...more },
    },
    ...{ files, nodeFiles },
    environment: { DOCKER_SOCKET: socket, SANDBOX_PROFILES_FILE: profilesFile },
  });
  onTestFinished(() => rig[Symbol.asyncDispose]());
  return rig;
}

const args = { a: 3, b: 4 };
const sum = { sum: 7, host: "sandbox" };

describe("a tool with the backend docker", () => {
  test("runs in containers, in Python and in Node, and calls others", async (context) => {
    const rig = await open(context);
    const called = await rig.call("python_asks", args);
    expect(called, rig.logLines.join("\n")).toMatchObject({
      kind: "success",
      toolResult: { answers: [sum, sum] },
      createdArtifacts: [{ filename: "sum.txt" }],
    });
    expect(await rig.call("node_asks", args)).toMatchObject({
      kind: "success",
      toolResult: { answer: sum, host: "sandbox" },
    });
  });

  test.for([
    ["python", "display(tools.sync.call('add', inputs))\n__out = 1"],
    ["typescript", "display(await tools.add(inputs)); __out = 1;"],
  ] as const)("runs programs, which call tools: %s", async ([language, code], context) => {
    const rig = await open(context);
    const answer = await rig.call("run", { code, language, inputs: args });
    expect(answer, rig.logLines.join("\n")).toMatchObject({
      kind: "success",
      toolResult: { value: 1, displays: [sum] },
    });
  });

  test("has no network, and is refused one", async (context) => {
    const rig = await open(context);
    expect(await rig.call("online", args)).toMatchObject({ kind: "error" });
    expect(rig.logLines.join("\n")).toContain("the docker backend has no networks");
  });
});
