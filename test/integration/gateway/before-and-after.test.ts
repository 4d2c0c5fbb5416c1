/**
 * What a worker does before and after a call that a tool makes, so that the call need not wait.
 */
import { readdir } from "node:fs/promises";
import { type TestContext, expect, test, vi } from "vitest";
import { isFilteredArch } from "../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { patience } from "../../support/patience.ts";
import { type RigTool, startRig } from "../../support/workers/rig.ts";

test("a child of a template has copied ahead what a call of another tool writes to", async (context: TestContext) => {
  context.skip(!isFilteredArch(process.arch), `there are no templates on ${process.arch}`);
  const module = "pages";
  const forked: RigTool = { module, start: "template", warm: { min: 1 } };
  const caller: RigTool = { ...forked, gateway: { tools: ["called"] } };
  await using rig = await startRig({
    tools: {
      called: { module, function: "nothing", allowed_callers: ["programmatic"] },
      waits: { ...caller, function: "waits" },
      awaits: { ...caller, module: "pages_awaited", function: "awaits" },
      sockets: { ...caller, function: "sockets" },
      fewer: { ...forked, function: "sockets" },
    },
    files: {
      [`${module}.py`]: `
import os, resource
def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def nothing():
    return {}
def sockets():
    held = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")[:-1]]
    return {"sockets": len([each for each in held if each.startswith("socket")])}
def waits(ctx):
    before = pages()
    ctx.tools.sync.call("called")
    return {"copied": pages() - before}
`,
      "pages_awaited.py": `
import asyncio
from pages import pages
async def awaits(ctx):
    before = pages()
    await ctx.tools.call("called")
    is_rehearsed = hasattr(asyncio, "Runner")  # From Python 3.11 on.
    return {"copied": pages() - before if is_rehearsed else 0}
`,
    },
    isWarm: true,
  });
  const answerOf = async (tool: string) => {
    await rig.untilWaiting(tool);
    const answer = await rig.call(tool);
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    return answer.toolResult;
  };
  // Otherwise more than 50.
  for (const tool of ["waits", "awaits"]) expect((await answerOf(tool))["copied"]).toBeLessThan(30);
  const [withGateway, without] = [await answerOf("sockets"), await answerOf("fewer")];
  expect(withGateway["sockets"]).toBe(Number(without["sockets"]) + 1);
});

const source = `
def nothing():
    return {}
def calls(ctx, count):
    for _ in range(count):
        ctx.tools.sync.call("called")
    return {}
`;

/** The work directory of a template's child has its own in it. */
const ofChild = /^[^/]+\/[^/]+\/[^/]+\/output$/;

test("what ended calls had is given back after a series of calls by a tool, not within it", async (context: TestContext) => {
  context.skip(!isFilteredArch(process.arch), `there are no templates on ${process.arch}`);
  const module = "series";
  let stoppedMs: number | undefined;
  const clock = { ...systemClock, monotonicMs: () => stoppedMs ?? systemClock.monotonicMs() };
  await using rig = await startRig({
    tools: {
      called: {
        ...{ module, function: "nothing", start: "template", warm: { min: 12 } },
        allowed_callers: ["direct", "programmatic"],
      },
      caller: { module, function: "calls", gateway: { tools: ["called"] } },
    },
    files: { [`${module}.py`]: source },
    isWarm: true,
    clock,
  });
  await rig.untilWaiting("called", 12);
  const directories = async (): Promise<readonly string[]> => {
    const entries = await readdir(rig.config.sandbox.workDir, { recursive: true });
    return entries.filter((path) => ofChild.test(path)).sort();
  };
  const before = await directories();
  stoppedMs = systemClock.monotonicMs();
  expect(await rig.call("caller", { count: 3 })).toMatchObject({ kind: "success" });
  // By the last of these, what the first had would be gone.
  for (let count = 0; count < 6; count++)
    expect(await rig.call("called")).toMatchObject({ kind: "success" });
  expect(await directories()).toEqual(expect.arrayContaining([...before]));
  stoppedMs = undefined;
  const areGone = async (): Promise<void> => {
    const after = await directories();
    expect(before.filter((path) => !after.includes(path))).toHaveLength(9);
  };
  await vi.waitFor(areGone, patience);
});
