/**
 * Promises of SECURITY.md about what all processes of a sandbox may use together. With control
 * groups the kernel keeps some of them; test/integration/sandbox/accounting.test.ts has both.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ToolCall } from "../../harness/messages.ts";
import { type Rig, type RigTool, startRig } from "../support/workers/rig.ts";

const MiB = 1024 * 1024;
const KiB = 1024;

const greedy = (name: string, limits: Readonly<Record<string, number>>): RigTool => ({
  module: "greedy",
  function: name,
  sandbox_profile: "restrictive",
  limits,
});

interface ErrorResponse {
  readonly error?: { readonly data?: Record<string, unknown> };
}

describe("a tool of several processes, each of which is within its own limits,", () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig({
      tools: {
        holds_memory: greedy("holds_memory", { memory_mb: 160 }),
        uses_time: greedy("uses_time", { cpu_seconds: 2 }),
        fills_disk: greedy("fills_disk", { disk_mb: 50 }),
        makes_files: greedy("makes_files", { files: 2_000 }),
        floods_statuses: greedy("floods_statuses", { status_kb: 64 }),
        places_itself: greedy("places_itself", { cpus: 1 }),
      },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  type Row = readonly [
    what: string,
    tool: string,
    args: ToolCall["args"],
    limit: string,
    bound: number,
    unit: string,
  ];
  const usual: readonly Row[] = [
    ["too much memory", "holds_memory", {}, "memory", 160 * MiB, "bytes"],
    ["too much disk", "fills_disk", {}, "disk", 50 * MiB, "bytes"],
    ["too much disk by no name", "fills_disk", { has_name: false }, "disk", 50 * MiB, "bytes"],
    ["too many files", "makes_files", { directory: "output" }, "files", 2_000, "count"],
    ["too many files in memory", "makes_files", { directory: "/tmp" }, "files", 2_000, "count"],
    ["too much to the status pipe", "floods_statuses", {}, "status", 64 * KiB, "bytes"],
  ];
  const slow: readonly Row[] = [
    ["too much processor time", "uses_time", {}, "cpu_time", 2, "seconds"],
  ];
  const isEnded = async ([, tool, args, limit, bound, unit]: Row): Promise<void> => {
    const answer = await rig.call(tool, args);
    expect(answer).toMatchObject({ kind: "error", code: "EXECUTION_ERROR" });
    const { response } = answer as { readonly response?: ErrorResponse };
    expect(response?.error?.data).toMatchObject({
      limit,
      bound,
      unit,
      peak: expect.any(Number) as number,
    });
  };
  test.for(usual)(
    "that takes %s is ended, and the answer says for what",
    { tags: "promise-E1" },
    isEnded,
  );
  test.for(slow)("that takes %s is ended as well", { tags: "full" }, isEnded);

  test("stays on the processors that it was given", { tags: "promise-S15" }, async (context) => {
    const answer = await rig.call("places_itself");
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    const { before, asked, after } = answer.toolResult;
    context.skip(asked === "granted", "there is no filter on this architecture");
    expect([before, asked]).toEqual([[expect.any(Number)], "PermissionError"]);
    expect(after).toEqual(before);
  });
});
