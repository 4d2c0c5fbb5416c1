/**
 * The answer to a call, as its caller reads it.
 */
import { z } from "zod";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";
import type { CreatedArtifact } from "../invocation.ts";

/** A decoded answer. `response` is the whole message. */
export type ReceivedAnswer =
  | {
      readonly kind: "success";
      readonly toolResult: JsonObject;
      readonly createdArtifacts: readonly CreatedArtifact[];
      readonly executionTimeMs: number;
      readonly response: JsonObject;
    }
  | {
      readonly kind: "error";
      readonly code: string;
      readonly message: string;
      readonly response: JsonObject;
    }
  /** The worker stopped the tool. */
  | {
      readonly kind: "timed-out";
      /** The worker's message for people. */
      readonly message: string;
      readonly executionTimeMs: number;
      readonly response: JsonObject;
    }
  /** Agents refuse an answer like this one. */
  | {
      readonly kind: "unusable";
      readonly problem: string;
      /** Undefined when the answer is no JSON object. */
      readonly response: JsonObject | undefined;
    };

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });

const createdArtifact = z
  .object({
    filename: z.string(),
    version: z.int().min(0),
    mime_type: z.string(),
    size_bytes: z.int().min(0),
    description: z.string().nullish(),
  })
  .transform((artifact): CreatedArtifact => ({
    filename: artifact.filename,
    version: artifact.version,
    mimeType: artifact.mime_type,
    sizeBytes: artifact.size_bytes,
    description: artifact.description ?? undefined,
  }));

/** As strict as agents are: the id is text, the error code is text, the execution time is whole. */
const answerSchema = z.object({
  id: z.string(),
  result: z
    .object({
      tool_result: jsonObject,
      execution_time_ms: z.int(),
      timed_out: z.boolean().default(false),
      created_artifacts: z.array(createdArtifact).default([]),
      data: z.object({ message: z.string() }).optional().catch(undefined),
    })
    .nullish(),
  error: z.object({ code: z.string(), message: z.string() }).nullish(),
});

/** Reads a document of any form. */
export function readAnswer(response: unknown): ReceivedAnswer {
  if (!isJsonObject(response)) {
    return { kind: "unusable", problem: "it is not a JSON object", response: undefined };
  }
  const parsed = answerSchema.safeParse(response);
  if (!parsed.success) return { kind: "unusable", problem: describe(parsed.error), response };
  const { result, error } = parsed.data;
  if (error) return { kind: "error", code: error.code, message: error.message, response };
  if (!result) {
    return { kind: "unusable", problem: "it has neither a result nor an error", response };
  }
  const executionTimeMs = result.execution_time_ms;
  if (result.timed_out) {
    const stopped = `The worker stopped the tool after ${executionTimeMs} ms`;
    const message = result.data?.message ?? stopped;
    return { kind: "timed-out", message, executionTimeMs, response };
  }
  return {
    kind: "success",
    toolResult: result.tool_result,
    createdArtifacts: result.created_artifacts,
    executionTimeMs,
    response,
  };
}

function describe(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue === undefined ? "it is no answer" : `${issue.path.join(".")}: ${issue.message}`;
}
