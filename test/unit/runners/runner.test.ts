/**
 * What a tool runner is told of a call.
 */
import { describe, expect, test } from "vitest";
import type { Invocation } from "../../../worker/protocol/invocation.ts";
import { type StagedArtifact, runnerArgs } from "../../../worker/runners/runner.ts";
import { tool as anyTool } from "../manifest/fixtures.ts";

const tool = anyTool("process_file", {
  module: "example_tools",
  callable: { kind: "function", name: "process" },
});

const invocation: Invocation = {
  id: "rpc-1",
  taskId: "task-1",
  toolName: "process_file",
  args: { input_file: "data.csv", limit: 5 },
  toolConfig: { api_key: "secret" },
  caller: { appName: "MyAgent", userId: "user-42", sessionId: "web-1" },
  references: new Map(),
  preloaded: new Map(),
  timeoutSeconds: 30,
  requestedProfile: "standard",
  replyTo: "reply/topic",
  statusTo: "status/topic",
  sentAtMs: 0,
};

const paths = { tools: "/tools/python", locate: (path: string) => path };

function staged(path: string): StagedArtifact {
  return { path, filename: "data.csv", mimeType: "text/csv", version: 3 };
}

describe("the arguments of a tool runner", () => {
  test("say what to call, with what, and where everything is inside the sandbox", () => {
    const artifacts = new Map([["input_file", staged("/sandbox/work/input/data.csv")]]);
    expect(runnerArgs(tool, invocation, artifacts, paths, { maxResultBytes: 10_000_000 })).toEqual({
      module: "example_tools",
      function: "process",
      args: { input_file: "data.csv", limit: 5 },
      tool_config: { api_key: "secret" },
      artifact_paths: { input_file: "/sandbox/work/input/data.csv" },
      artifact_metadata: {
        input_file: {
          filename: "data.csv",
          mime_type: "text/csv",
          version: 3,
          local_path: "/sandbox/work/input/data.csv",
        },
      },
      status_pipe: "/sandbox/work/status.pipe",
      result_file: "/sandbox/work/result.json",
      output_dir: "/sandbox/work/output",
      tools_dir: "/tools/python",
      task_id: "task-1",
      user_id: "user-42",
      session_id: "web-1",
      app_name: "MyAgent",
      max_result_bytes: 10_000_000,
    });
  });

  test.each([
    [
      { kind: "class", name: "Tool" },
      { module: "m", class_name: "Tool" },
    ],
    [
      { kind: "provider", name: "Tools", provides: "one" },
      { module: "m", class_name: "Tools", tool_name: "one" },
    ],
    [{ kind: "program", name: "one" }, { tool_name: "one" }],
  ] as const)("say which part of it: %j", (callable, expected) => {
    const entry = anyTool("any", { module: "m", callable });
    const args = runnerArgs(entry, invocation, new Map(), paths, { maxResultBytes: 1 });
    const { module, function: name, class_name, tool_name } = args;
    const said = { module, function: name, class_name, tool_name };
    expect(JSON.parse(JSON.stringify(said))).toEqual(expected);
  });

  test("keep parameters named like members of every object", () => {
    const artifacts = new Map([["__proto__", staged("/sandbox/work/input/p")]]);
    const text = JSON.stringify(
      runnerArgs(tool, invocation, artifacts, paths, { maxResultBytes: 1 }),
    );
    const { artifact_paths, artifact_metadata } = JSON.parse(text) as Record<string, object>;
    expect(Object.keys(artifact_paths!)).toEqual(["__proto__"]);
    expect(Object.keys(artifact_metadata!)).toEqual(["__proto__"]);
  });

  test("have the deadline and the trace context where they are known", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const limits = { maxResultBytes: 1, deadlineMs: 1_795_200_128_599 };
    expect(
      runnerArgs(tool, { ...invocation, traceparent, tracestate: "v=1" }, new Map(), paths, limits),
    ).toMatchObject({ deadline_ms: 1_795_200_128_599, traceparent, tracestate: "v=1" });
  });

  test("have the gateway where the sandbox has one", () => {
    const limits = { maxResultBytes: 1 };
    for (const channel of [{ fd: 9 }, { path: "/sandbox/work/gateway.sock" }]) {
      const places = { ...paths, gateway: { channel, maxConcurrentCalls: 2 } };
      const args = runnerArgs(tool, invocation, new Map(), places, limits);
      expect(args["gateway"]).toEqual({ ...channel, max_concurrent_calls: 2 });
    }
    expect(runnerArgs(tool, invocation, new Map(), paths, limits)).not.toHaveProperty("gateway");
  });

  test("do not say where the answer goes", () => {
    const text = JSON.stringify(
      runnerArgs(tool, invocation, new Map(), paths, { maxResultBytes: 1 }),
    );
    expect(text).not.toContain("reply/topic");
    expect(text).not.toContain("status/topic");
  });
});
