/**
 * A call that its caller cancels, on a whole worker: in each phase, and in each kind of sandbox.
 */
import { describe, expect, test, vi } from "vitest";
import type { CallResult } from "../../../harness/agent.ts";
import { s3Variables } from "../../../harness/fakes/s3/variables.ts";
import type { ToolCall } from "../../../harness/messages.ts";
import { stopGraceMs } from "../../../worker/invocation/steps/run-to-exit.ts";
import { patience } from "../../support/patience.ts";
import { useCredentials, useFakeS3 } from "../../support/s3.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";
import { type Rig, type RigTool, nodeTool, startRig } from "../../support/workers/rig.ts";
import { never, sourceOf } from "../../unit/artifacts/fixtures.ts";

const bucket = "artifacts";
const python = (name: string, more: Partial<RigTool> = {}): RigTool => ({
  module: "cancelled",
  function: name,
  ...more,
});

const stopped = {
  kind: "error",
  code: "CANCELLED",
  message: "The caller cancelled the call, and the tool was stopped",
};
const notStarted = {
  kind: "error",
  code: "CANCELLED",
  message: "The caller cancelled the call before the tool started",
};

/** Calls a tool, and cancels the call when the tool is ready. */
async function cancelReady(rig: Rig, tool: string) {
  const cancel = new AbortController();
  const statuses: string[] = [];
  const onStatus = (text: string): void => {
    statuses.push(text);
    if (text === "ready") cancel.abort();
  };
  const result = await call(rig, tool, cancel.signal, {}, onStatus);
  return { result, statuses };
}

function call(
  rig: Rig,
  tool: string,
  cancel: AbortSignal,
  more: Partial<ToolCall> = {},
  onStatus: (text: string) => void = () => undefined,
): Promise<CallResult> {
  const user = { userId: "user-42", sessionId: "web-1" };
  return rig.agent.call({ tool, ...user, timeoutSeconds: 60, ...more }, { cancel, onStatus });
}

/** The sandbox of a call, as its answer reports it. */
function executionOf({ result }: { readonly result: CallResult }): unknown {
  if (result.kind !== "error") throw new Error(`the call is no error but ${result.kind}`);
  const { data } = result.response["error"] as { readonly data: { readonly execution: unknown } };
  return data.execution;
}

describe("a running call that its caller cancels", () => {
  test("lets the tool clean up, is answered once, and leaves its worker ready for others", async () => {
    const names = ["polls", "calls_back", "awaits"];
    await using rig = await startRig({
      tools: {
        ...Object.fromEntries(names.map((name) => [name, python(name, { idempotent: false })])),
        node: nodeTool("cancelled.ts", "awaits"),
        waits: python("waits"),
        well: { function: "well" },
      },
    });
    const all = await Promise.all([...names, "node"].map((name) => cancelReady(rig, name)));
    for (const { result, statuses } of all) {
      expect(result).toMatchObject(stopped);
      expect(statuses).toEqual(["ready", "cleaned up"]);
    }
    const { result } = await cancelReady(rig, "waits");
    expect(result).toMatchObject(stopped);
    expect(executionOf({ result })).toMatchObject({ start: "cold", usage: { wall_ms: expect.any(Number) as unknown } });
    expect(await rig.call("well")).toMatchObject({ kind: "success" });
    const ends = loggedFacts(rig.logLines, "call.cancelled");
    expect(ends).toHaveLength(5);
    for (const end of ends) expect(end).toMatchObject({ reason: "caller", started: true });
  });
});
