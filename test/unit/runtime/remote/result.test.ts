/**
 * Answers of other workers, as the calling tool gets them.
 */
import { expect, test } from "vitest";
import { readAnswer } from "../../../../worker/protocol/messages/answer.ts";
import { resultOf } from "../../../../worker/runtime/remote/result.ts";

/** What an answer throws. */
function failureOf(answer: object): unknown {
  try {
    resultOf(readAnswer({ id: "1", ...answer }));
  } catch (error) {
    return error;
  }
  throw new Error("it is a result");
}

const error = (code: string, more = {}): object => ({ error: { code, message: "no", ...more } });

test("a result has its artifacts, and says that it came from another worker", () => {
  const artifact = { filename: "a.txt", version: 1, mime_type: "text/plain", size_bytes: 2 };
  const result = {
    tool_result: { sunny: true },
    execution_time_ms: 1,
    created_artifacts: [artifact],
    unheard_of: {},
  };
  expect(resultOf(readAnswer({ id: "1", result }))).toEqual({
    structured: { sunny: true },
    artifacts: [{ filename: "a.txt", version: 1, mimeType: "text/plain", sizeBytes: 2 }],
    backend: "remote",
  });
});

test.each([
  ["TOOL_NOT_AVAILABLE", { retryable: true, op: "resolve" }],
  ["INVALID_REQUEST", { retryable: false, op: "validate_input" }],
  ["EXECUTION_ERROR", { retryable: false, op: "execute" }],
])("the code %s is the other worker's", (code, facts) => {
  expect(failureOf(error(code))).toMatchObject({ code, message: "no", data: undefined, ...facts });
});

test.each(["AUTHENTICATION_FAILED", "NOT_ALLOWED", "__proto__"])(
  "the code %s, which workers do not have, stands in the data",
  (code) => {
    expect(failureOf(error(code, { data: { more: 1 } }))).toMatchObject({
      code: "EXECUTION_ERROR",
      data: { more: 1, code },
    });
  },
);

test("the data of an error comes without the report on its sandbox, and bounded", () => {
  const data = { limit: "memory", execution: { profile: "standard" } };
  expect(failureOf(error("EXECUTION_ERROR", { data }))).toHaveProperty("data", { limit: "memory" });
  const large = { data: { text: "x".repeat(20_000) } };
  expect(failureOf(error("EXECUTION_ERROR", large))).toHaveProperty("data", undefined);
});

test("a message is bounded", () => {
  const failure = failureOf({ error: { code: "TOOL_ERROR", message: "x".repeat(10_000) } });
  expect(failure).toHaveProperty("message", "x".repeat(4_000));
});

test.each([{}, { result: { tool_result: "text", execution_time_ms: 1 } }, { id: 1 }])(
  "%j is no answer",
  (answer) => {
    expect(failureOf(answer)).toMatchObject({ code: "EXECUTION_ERROR", op: "validate_output" });
  },
);
