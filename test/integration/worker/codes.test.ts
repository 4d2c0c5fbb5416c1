/**
 * The table of error codes: each one brought about by its real cause, end to end.
 */
import { rename } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CallResult } from "../../../harness/agent.ts";
import { type Rig, type RigTool, startRig } from "../../support/workers/rig.ts";

interface Row {
  readonly cause: string;
  readonly tool: RigTool;
  readonly args?: Record<string, string | number>;
  readonly code: string;
  readonly message: string | RegExp;
}

const rows: readonly Row[] = [
  {
    cause: "an exception",
    tool: { function: "raises" },
    code: "EXECUTION_ERROR",
    message: "Tool raised ValueError: invalid input format",
  },
  {
    cause: "a missing argument",
    tool: { function: "takes_two" },
    args: { name: "a" },
    code: "EXECUTION_ERROR",
    message: /takes_two.*size/,
  },
  {
    cause: "an unknown argument",
    tool: { function: "takes_two" },
    args: { name: "a", size: 1, colour: "red" },
    code: "EXECUTION_ERROR",
    message: /colour/,
  },
  {
    cause: "more memory than the profile allows",
    tool: { function: "takes_memory" },
    code: "EXECUTION_ERROR",
    message: /memory/i,
  },
  {
    cause: "a module that does not exist",
    tool: { module: "no_such_module", function: "run" },
    code: "IMPORT_ERROR",
    message: /no_such_module/,
  },
  {
    cause: "a module that fails while it is imported",
    tool: { module: "fails_on_import", function: "run" },
    code: "IMPORT_ERROR",
    message: /fails_on_import.*RuntimeError: no database/,
  },
  {
    cause: "a function that is not in the module",
    tool: { function: "no_such_function" },
    code: "TOOL_NOT_FOUND",
    message: /misbehaving.*no_such_function/,
  },
  {
    cause: "an exit code",
    tool: { function: "exits_3" },
    code: "SANDBOX_FAILED",
    message: "The tool's process exited with code 3: cannot open settings.ini",
  },
  {
    cause: "a signal",
    tool: { function: "kills_itself" },
    code: "SANDBOX_FAILED",
    message: "The tool's process was ended by SIGKILL",
  },
  {
    cause: "an error that the tool reports",
    tool: { function: "reports_error" },
    code: "TOOL_ERROR",
    message: /the city is unknown/,
  },
  {
    cause: "a missing result",
    tool: { function: "no_result" },
    code: "INTERNAL_ERROR",
    message: "The tool ended without a result",
  },
  {
    cause: "a result that is not JSON",
    tool: { function: "result_no_json" },
    code: "INTERNAL_ERROR",
    message: /result cannot be read: not valid JSON/,
  },
  {
    cause: "a result that is not an object",
    tool: { function: "result_list" },
    code: "INTERNAL_ERROR",
    message: /not a JSON object/,
  },
  {
    cause: "a result nested too deep",
    tool: { function: "result_deep" },
    code: "INTERNAL_ERROR",
    message: /deeper than \d+ levels/,
  },
  {
    cause: "a result of too many values",
    tool: { function: "result_many" },
    code: "INTERNAL_ERROR",
    message: /more than \d+ values/,
  },
  {
    cause: "a result that is a link to a file of the host",
    tool: { function: "result_link" },
    code: "INTERNAL_ERROR",
    message: "The tool ended without a result",
  },
  {
    cause: "a result that is a pipe",
    tool: { function: "result_fifo" },
    code: "INTERNAL_ERROR",
    message: "The tool ended without a result",
  },
  {
    cause: "a result that is too large",
    tool: { function: "large_result" },
    code: "RESOURCE_EXHAUSTED",
    message: /11,?000,?\d{3}.*10,?000,?000/,
  },
  {
    cause: "a result too large that the runner did not see",
    tool: { function: "large_result_by_hand" },
    code: "RESOURCE_EXHAUSTED",
    message: /110000\d\d bytes; at most 10000000/,
  },
  {
    cause: "a result that fits, in a response that does not",
    tool: { function: "nearly_too_large" },
    code: "RESOURCE_EXHAUSTED",
    message: /response has 10000\d\d\d bytes; at most 10000000/,
  },
  {
    cause: "a file that is larger than the profile allows, be it sparse",
    tool: { function: "saves_sparse" },
    code: "EXECUTION_ERROR",
    message: /OSError.*File too large/,
  },
  {
    cause: "too many outputs",
    tool: { function: "saves_many" },
    code: "ARTIFACT_ERROR",
    message: /there are 101 output files or more, at most 100 are allowed/,
  },
  {
    cause: "an output in a sub-directory",
    tool: { function: "saves_below" },
    code: "ARTIFACT_ERROR",
    message: /output "charts\/may\/a.png" is in a sub-directory/,
  },
];

const nameOf = (row: Row): string => `t${rows.indexOf(row)}`;

function failure(result: CallResult): { code: string; message: string } {
  expect(result.kind).toBe("error");
  return result as Extract<CallResult, { kind: "error" }>;
}

describe("a failing call is answered with", () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({
      tools: {
        ...Object.fromEntries(rows.map((row) => [nameOf(row), row.tool])),
        reads: { function: "reads" },
        well: { function: "well" },
        soft_error: { function: "soft_error" },
        sleeps: { function: "sleeps" },
      },
      files: { "fails_on_import.py": 'raise RuntimeError("no database")\n' },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  for (const row of rows) {
    test(`${row.code} for ${row.cause}`, async () => {
      const { code, message } = failure(await rig.call(nameOf(row), row.args));
      expect({ code, message }).toEqual({
        code: row.code,
        message: expect.stringMatching(row.message),
      });
      expect(message).not.toMatch(/Traceback|\/var\/tmp|\/opt\//);
    });
  }

  test("ARTIFACT_ERROR naming an input that is not in the store, before the tool starts", async () => {
    const references = new Map([["input_file", { filename: "data.csv", version: 3 }]]);
    const { code, message } = failure(await rig.call("reads", {}, { references }));
    expect(code).toBe("ARTIFACT_ERROR");
    expect(message).toMatch(/"data.csv" for parameter "input_file".*version 3/);
  });

  test("INVALID_REQUEST naming the field", async () => {
    const { code, message } = failure(await rig.call("well", {}, { timeoutSeconds: -1 }));
    expect(code).toBe("INVALID_REQUEST");
    expect(message).toMatch(/params\.timeout_seconds/);
  });

  test("INVALID_REQUEST for a profile that does not exist, naming those that do", async () => {
    const { code, message } = failure(await rig.call("well", {}, { profile: "lax" }));
    expect(code).toBe("INVALID_REQUEST");
    expect(message).toMatch(/params\.sandbox_profile.*restrictive, standard, permissive/);
  });

  test("a success for a tool that returns an error of its own, as agents expect", async () => {
    const result = await rig.call("soft_error");
    expect(result).toMatchObject({
      kind: "success",
      toolResult: { status: "error", error: "soft failure" },
    });
  });

  test("CANCELLED for a call that its caller cancels", async () => {
    const call = { tool: "sleeps", timeoutSeconds: 30 };
    const { code, message } = failure(
      await rig.agent.call(call, { cancel: AbortSignal.abort(new Error("no longer needed")) }),
    );
    expect(code).toBe("CANCELLED");
    expect(message).toMatch(/^The caller cancelled the call/);
  });

  test("a timed-out result and SANDBOX_TIMEOUT for a tool that runs too long", async () => {
    const result = await rig.call("sleeps", {}, { timeoutSeconds: 1 });
    expect(result.kind).toBe("timed-out");
    expect(result).toMatchObject({
      response: {
        result: {
          tool_result: {},
          timed_out: true,
          created_artifacts: [],
          error_code: "SANDBOX_TIMEOUT",
        },
      },
    });
    expect(result).not.toHaveProperty("response.error");
  });
});

test("a sandbox that cannot start is SANDBOX_FAILED, with the true cause in the log and no path in the answer", async () => {
  await using rig = await startRig({ tools: { well: { function: "well" } } });
  expect(await rig.call("well")).toMatchObject({ kind: "success" });
  await rename(rig.toolsDir, `${rig.toolsDir}.gone`);
  const { code, message } = failure(await rig.call("well"));
  expect({ code, message }).toEqual({
    code: "SANDBOX_FAILED",
    message: "The sandbox could not be started",
  });
  const logged = rig.logLines.find((line) => line.includes("could not be started"));
  expect(logged).toMatch(/Can't find source path|cannot share/);
  // It was the directory: with it back, the next call runs.
  await rename(`${rig.toolsDir}.gone`, rig.toolsDir);
  expect(await rig.call("well")).toMatchObject({ kind: "success" });
});
