/**
 * Tools that call others more than a worker can serve at once, and requests without end.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Span, mostAtOnce } from "../../../bench/gateway/overlap.ts";
import { toolsDir } from "../../../bench/tools.ts";
import { type RigTool, startRig } from "../../support/workers/rig.ts";

const module = "bench_gateway";
const files = { [`${module}.py`]: readFileSync(join(toolsDir, `python/${module}.py`), "utf8") };
const works: RigTool = { module, function: "works", allowed_callers: ["programmatic"] };

function caller(name: string): RigTool {
  return { module, function: name, gateway: { tools: ["works"], max_lookups: 1_000 } };
}

test(
  "all of many tools that call others end, and no more work at once than there are slots",
  { tags: ["promise-G4", "full"] },
  async () => {
    await using rig = await startRig({
      tools: {
        works: { ...works, start: "template", warm: { min: 1 } },
        program: { ...caller("works_by_calls"), start: "template", warm: { min: 1 } },
      },
      files,
      // The starts of sandboxes take less than the work.
      isWarm: true,
      environment: { SANDBOX_MAX_CONCURRENT: "1" },
    });
    await Promise.all(["works", "program"].map((tool) => rig.untilWaiting(tool)));
    const args = { tool: "works", count: 1, seconds: 0.1 };
    const programs = Array.from({ length: 4 }, () => rig.call("program", args));
    const spans = (await Promise.all(programs)).flatMap((answer) => {
      if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
      return answer.toolResult["spans"] as readonly Span[];
    });
    expect(spans).toHaveLength(4 * 3);
    // Each tells of itself, by the clock of all.
    expect(mostAtOnce(spans)).toBe(1);
  },
);

test(
  "of 300,000 requests whose answers a tool does not read, the worker reads few",
  { tags: ["full", "promise-G4"] },
  async () => {
    const parameters = { type: "object", description: "x".repeat(16_384) };
    await using rig = await startRig({
      tools: { works: { ...works, parameters }, floods: caller("floods") },
      files,
    });
    const payload = { id: "works", level: "full" };
    const request = `${JSON.stringify({ type: "describe_tool", id: "%d", payload })}\n`;
    const flood = { request, count: 300_000, seconds: 1 };
    const answer = await rig.call("floods", flood);
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    const { sent, unsent } = answer.toolResult as { sent: number; unsent: number };
    expect(sent).toBeGreaterThan(request.length);
    // The socket holds most of it.
    expect(sent).toBeLessThan(2 ** 19);
    expect(unsent).toBeGreaterThan(20 * 2 ** 20);
  },
);
