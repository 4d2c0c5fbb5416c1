/**
 * What a tool prints stands in the debug log while it runs; what is no call leaves no warning
 * there.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Rig, nodeTool, startRig } from "../../../support/workers/rig.ts";
import { loggedFacts } from "../../../support/workers/kept-log.ts";

const files = {
  "talking.py": `
import os, sys

def dies():
    print("on its way")
    sys.stdout.write("its last words")
    sys.stdout.flush()
    os.kill(os.getpid(), 9)

def floods():
    for _ in range(3):
        print("x" * 1024 * 1023)
    return {}
`,
};
const nodeFiles = {
  "talking.js": `export const says = () => console.error("from node\\n") ?? {};`,
};

async function startTalking(isWarm: boolean): Promise<Rig> {
  const module = "talking";
  return startRig({
    tools: {
      dies: { module, function: "dies", ...(isWarm && { warm: { min: 1 } }) },
      floods: { module, function: "floods" },
      says: nodeTool("talking.js", "says"),
    },
    files,
    nodeFiles,
    isWarm,
  });
}

let cold: Rig;
beforeAll(async () => {
  cold = await startTalking(false);
});
afterAll(() => cold[Symbol.asyncDispose]());

async function expectLastWords(rig: Rig): Promise<void> {
  expect(await rig.call("dies")).toMatchObject({ kind: "error", code: "SANDBOX_FAILED" });
  const said = loggedFacts(rig.logLines, "tool.output").filter(({ tool }) => tool === "dies");
  expect(said).toMatchObject([
    { level: "debug", stream: "stdout", text: "on its way" },
    { level: "debug", stream: "stdout", text: "its last words" },
  ]);
}

test("what a tool prints is logged as it comes, so nothing of one that is killed is lost", async () => {
  await expectLastWords(cold);
});

test("the same holds for a tool that was loaded ahead of its call", { tags: "full" }, async () => {
  const warm = await startTalking(true);
  onTestFinished(() => warm[Symbol.asyncDispose]());
  await warm.untilWaiting("dies");
  await expectLastWords(warm);
});

test("the log takes no more of a stream than a MiB, lines of any length, and empty ones", async () => {
  expect(await cold.call("floods")).toMatchObject({ kind: "success" });
  const texts = loggedFacts(cold.logLines, "tool.output").map(({ text }) => String(text).length);
  const bytes = texts.reduce((sum, length) => sum + length, 0);
  expect(bytes).toBeGreaterThan(1024 * 1024);
  expect(bytes).toBeLessThan(2 * 1024 * 1024);
  expect(loggedFacts(cold.logLines, "tool.output_limit_reached")).toMatchObject([
    { stream: "stdout" },
  ]);
  expect(await cold.call("says")).toMatchObject({ kind: "success" });
  const said = loggedFacts(cold.logLines, "tool.output").filter(({ tool }) => tool === "says");
  expect(said).toMatchObject([
    { stream: "stderr", text: "from node" },
    { stream: "stderr", text: "" },
  ]);
});

test("who asks whether a tool is served leaves no warning, and a call that cannot be read does", async () => {
  await cold.agent.whenServed("dies", AbortSignal.timeout(30_000));
  expect(loggedFacts(cold.logLines, "tool.probed")).toHaveLength(1);
  expect(loggedFacts(cold.logLines, "call.refused")).toEqual([]);
  await cold.call("dies", {}, { userId: "" });
  expect(loggedFacts(cold.logLines, "call.refused")).toMatchObject([{ level: "warn" }]);
});
