/**
 * What a tool prints stands in the debug log and in the answer where the operator wants it; what is
 * no call leaves no warning in the log.
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

async function startTalking(isWarm: boolean, toolLogs = "caller"): Promise<Rig> {
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
    environment: { TOOL_LOGS: toolLogs, TOOL_LOGS_MAX_KB: "1" },
  });
}

/** What the log and the answer have of a tool that was killed. */
async function outputOf(rig: Rig): Promise<{ readonly log: unknown; readonly answer: unknown }> {
  const answer = await rig.call("dies");
  if (answer.kind !== "error") throw new Error(answer.kind);
  const [ended] = loggedFacts(rig.logLines, "tool.ended");
  const { execution } = memberOf(memberOf(answer.response, "error"), "data");
  return { log: ended?.["report"], answer: execution };
}

const memberOf = (value: unknown, name: string) =>
  (value as Record<string, Record<string, unknown>>)[name]!;

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

test("the answer has the end of it, too", async () => {
  const printed = { text: "on its way\nits last words", dropped_bytes: 0 };
  const { answer } = await outputOf(cold);
  expect(answer).toMatchObject({ output: { stdout: printed, stderr: { text: "" } } });
});

test("neither has it by default", { tags: ["promise-O8"] }, async () => {
  await using rig = await startTalking(false, "off");
  const { log, answer } = await outputOf(rig);
  expect(log).toMatchObject({ signal: "SIGKILL" });
  expect(answer).toMatchObject({ profile: "standard" });
  expect(JSON.stringify([rig.logLines, answer])).not.toContain("its last words");
});

test(
  "the log has the end of it, and no answer, where that is set",
  { tags: ["promise-O8"] },
  async () => {
    await using rig = await startTalking(false, "log");
    const { log, answer } = await outputOf(rig);
    const text = "on its way\nits last words";
    expect(log).toMatchObject({ stdout: { text, droppedBytes: 0 }, stderr: { text: "" } });
    expect(loggedFacts(rig.logLines, "tool.output")).toEqual([]);
    expect(JSON.stringify(answer)).not.toContain("its last words");
    expect(await rig.call("floods")).toMatchObject({ kind: "success" });
    const flood = loggedFacts(rig.logLines, "tool.ended").at(-1)?.["report"];
    expect(flood).toMatchObject({ stdout: { droppedBytes: 3 * (1024 * 1023 + 1) - 1024 } });
  },
);

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
