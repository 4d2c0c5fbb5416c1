/**
 * The closed list of error codes.
 */
import { describe, expect, test } from "vitest";
import { type ErrorCode, InvocationError, errorCodes } from "../../../worker/protocol/errors.ts";

describe("the error codes", () => {
  test("are those of the design document, RESOURCE_EXHAUSTED of later peers, and three of ours", () => {
    expect(errorCodes).toEqual([
      "SANDBOX_TIMEOUT",
      "SANDBOX_FAILED",
      "TOOL_NOT_AVAILABLE",
      "TOOL_NOT_FOUND",
      "IMPORT_ERROR",
      "EXECUTION_ERROR",
      "TOOL_ERROR",
      "ARTIFACT_ERROR",
      "INVALID_REQUEST",
      "INTERNAL_ERROR",
      "RESOURCE_EXHAUSTED",
      "CANCELLED",
      "NOT_REPEATED",
      "POISONED",
    ] satisfies ErrorCode[]);
  });

  test("say whether another try can help: a missing tool and a busy worker, nothing else", () => {
    const retryable = errorCodes.filter((code) => new InvocationError(code, "x").retryable);
    expect(retryable).toEqual(["TOOL_NOT_AVAILABLE", "RESOURCE_EXHAUSTED"]);
  });
});

describe("an invocation error", () => {
  test("keeps the truth behind it apart from what is published", () => {
    const cause = new Error("ENOSPC /srv/artifacts");
    const error = new InvocationError("ARTIFACT_ERROR", "The store is full", { cause });
    expect(error).toMatchObject({
      name: "InvocationError",
      code: "ARTIFACT_ERROR",
      message: "The store is full",
      cause,
    });
    expect(error).toBeInstanceOf(Error);
  });
});
