/**
 * The answer on the wire, held to what real agents accept.
 */
import { anyCharacter, fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { InvocationError, errorCodes } from "../../../worker/protocol/errors.ts";
import type { Answer, CreatedArtifact } from "../../../worker/protocol/invocation.ts";
import { encodeResponse } from "../../../worker/protocol/messages/response.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";

/**
 * What the models of agents demand; stricter than they are in that no other member may stand
 * anywhere.
 */
const agentsModel = z.union([
  z.strictObject({
    jsonrpc: z.literal("2.0"),
    id: z.string(),
    result: z.strictObject({
      tool_result: z.record(z.string(), z.unknown()),
      execution_time_ms: z.int(),
      timed_out: z.boolean(),
      created_artifacts: z.array(
        z.strictObject({
          filename: z.string(),
          version: z.int(),
          mime_type: z.string(),
          size_bytes: z.int(),
          description: z.string().optional(),
        }),
      ),
      error_code: z.literal("SANDBOX_TIMEOUT").optional(),
    }),
  }),
  z.strictObject({
    jsonrpc: z.literal("2.0"),
    id: z.string(),
    error: z.strictObject({ code: z.string(), message: z.string() }),
  }),
]);

function textOf(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

function answer(outcome: Answer, id = "e524ecb5", maxBytes?: number) {
  return agentsModel.parse(JSON.parse(textOf(encodeResponse(id, outcome, maxBytes))));
}

const report: CreatedArtifact = {
  filename: "summary.txt",
  version: 0,
  mimeType: "text/plain",
  sizeBytes: 256,
  description: undefined,
};

function success(toolResult: JsonObject, createdArtifacts: CreatedArtifact[] = []) {
  return { kind: "success", toolResult, createdArtifacts, executionTimeMs: 150 } as const;
}

describe("the answer to a call that succeeded", () => {
  test("is the design document's, byte for byte compact", () => {
    const bytes = encodeResponse(
      "e524ecb5",
      success({ status: "success", word_count: 42 }, [report]),
    );
    expect(textOf(bytes)).toBe(
      '{"jsonrpc":"2.0","id":"e524ecb5","result":{"tool_result":{"status":"success",' +
        '"word_count":42},"execution_time_ms":150,"timed_out":false,"created_artifacts":[{' +
        '"filename":"summary.txt","version":0,"mime_type":"text/plain","size_bytes":256}]}}',
    );
  });

  test("names an artifact's description when there is one", () => {
    const described = answer(success({}, [{ ...report, description: "The summary" }]));
    expect(described).toMatchObject({
      result: { created_artifacts: [{ description: "The summary" }] },
    });
  });

  test("has an empty list where no artifact was made", () => {
    expect(answer(success({}))).toMatchObject({ result: { created_artifacts: [] } });
  });

  test("keeps the nulls of the tool's own result", () => {
    expect(answer(success({ found: null, list: [null] }))).toMatchObject({
      result: { tool_result: { found: null, list: [null] } },
    });
  });

  test("passes a tool's own error report on as the result it is", () => {
    expect(answer(success({ status: "error", error: "no such row" }))).toMatchObject({
      result: { tool_result: { status: "error", error: "no such row" }, timed_out: false },
    });
  });

  test.each([
    [150.4, 150],
    [150.5, 151],
    [0, 0],
  ])("tells %d ms as the whole number %d: agents refuse fractions", (executionTimeMs, told) => {
    const outcome = { ...success({}), executionTimeMs };
    expect(answer(outcome)).toMatchObject({ result: { execution_time_ms: told } });
  });
});

describe("the answer to a call that ran out of time", () => {
  test("is a result that says so, with the code for readers that look for one", () => {
    expect(answer({ kind: "timeout", executionTimeMs: 7013.2 })).toEqual({
      jsonrpc: "2.0",
      id: "e524ecb5",
      result: {
        tool_result: {},
        execution_time_ms: 7013,
        timed_out: true,
        created_artifacts: [],
        error_code: "SANDBOX_TIMEOUT",
      },
    });
  });
});

describe("the answer to a call that came too late", () => {
  test("tells its age and by whose clock", () => {
    const age = { ageMs: 17_000, sentAtMs: 1_000, receivedAtMs: 18_000, clock: "sender" } as const;
    const bytes = encodeResponse("id", { kind: "timeout", executionTimeMs: 0, age });
    expect(JSON.parse(textOf(bytes))).toMatchObject({
      result: {
        timed_out: true,
        data: {
          message: expect.stringContaining("The call was 17000 ms old") as string,
          ...{ age_ms: 17_000, sent_at_ms: 1_000, received_at_ms: 18_000, clock: "sender" },
        },
      },
    });
  });
});

describe("the answer to a call that failed", () => {
  test.each(errorCodes)("carries the code as text and the message, nothing else: %s", (code) => {
    const error = new InvocationError(code, "what, which, where", {
      cause: new Error("/srv/secret/path"),
    });
    expect(answer({ kind: "error", error, executionTimeMs: 3 })).toEqual({
      jsonrpc: "2.0",
      id: "e524ecb5",
      error: { code, message: "what, which, where" },
    });
  });

  test("lists the versions of its outputs that remain", () => {
    const remainingArtifacts = [{ filename: "a.csv", version: 3 }];
    const error = new InvocationError("ARTIFACT_ERROR", "the store is full", {
      remainingArtifacts,
    });
    const bytes = encodeResponse("1", { kind: "error", error, executionTimeMs: 3 });
    expect(JSON.parse(textOf(bytes))).toMatchObject({
      error: {
        code: "ARTIFACT_ERROR",
        message: "the store is full",
        data: { remaining_artifacts: remainingArtifacts },
      },
    });
  });
});

describe("an answer that is too large to be sent", () => {
  const big = success({ text: "é".repeat(1_000) });

  test("becomes an error that names both sizes, for the same call", () => {
    const sizeBytes = encodeResponse("e524ecb5", big).byteLength;
    expect(answer(big, "e524ecb5", 1_000)).toEqual({
      jsonrpc: "2.0",
      id: "e524ecb5",
      error: {
        code: "RESOURCE_EXHAUSTED",
        message: `The response has ${sizeBytes} bytes; at most 1000 can be sent. Return large data as an artifact.`,
      },
    });
  });

  test("is measured in bytes, and the last byte counts", () => {
    const sizeBytes = encodeResponse("e524ecb5", big).byteLength;
    expect(sizeBytes).toBeGreaterThan(2_000);
    expect(answer(big, "e524ecb5", sizeBytes)).toHaveProperty("result");
    expect(answer(big, "e524ecb5", sizeBytes - 1)).toHaveProperty("error");
  });

  test("is one beyond the 10,000,000 bytes that peers publish at most", () => {
    const overheadBytes = encodeResponse("i", success({ text: "" })).byteLength;
    const fits = success({ text: "x".repeat(10_000_000 - overheadBytes) });
    expect(encodeResponse("i", fits).byteLength).toBe(10_000_000);
    const tooLarge = success({ text: "x".repeat(10_000_001 - overheadBytes) });
    expect(answer(tooLarge, "i")).toHaveProperty("error.code", "RESOURCE_EXHAUSTED");
  });
});

const text = fc.string({ unit: anyCharacter });
const outcomes: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({
    kind: fc.constant("success" as const),
    toolResult: fc.dictionary(text, fc.jsonValue()) as fc.Arbitrary<JsonObject>,
    createdArtifacts: fc.array(
      fc.record({
        filename: text,
        version: fc.nat(),
        mimeType: text,
        sizeBytes: fc.nat(),
        description: fc.option(text, { nil: undefined }),
      }),
    ),
    executionTimeMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
  }),
  fc.record({
    kind: fc.constant("timeout" as const),
    executionTimeMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
  }),
  fc.record({
    kind: fc.constant("error" as const),
    error: fc
      .tuple(fc.constantFrom(...errorCodes), text)
      .map(([code, message]) => new InvocationError(code, message)),
    executionTimeMs: fc.nat(),
  }),
);

describe("every answer", () => {
  propertyTest.prop([text, outcomes, fc.constantFrom(undefined, 500)])(
    "is one that agents accept, with the id of its call",
    (id, outcome, maxBytes) => {
      expect(answer(outcome, id, maxBytes).id).toBe(id);
    },
  );

  propertyTest.prop([text, fc.dictionary(text, fc.jsonValue())])(
    "brings the tool's result unchanged",
    (id, toolResult) => {
      const decoded = JSON.parse(textOf(encodeResponse(id, success(toolResult as JsonObject)))) as {
        result: { tool_result: unknown };
      };
      expect(decoded.result.tool_result).toStrictEqual(JSON.parse(JSON.stringify(toolResult)));
    },
  );
});
