/**
 * Copies of arguments and results, as they would come out of a channel: both gateways give the
 * same.
 */
import { maxMessageBytes } from "../protocol/limits.ts";
import { type Json, type JsonObject, isJsonObject } from "../support/json/json.ts";
import { GatewayError, type RunResult, invalid } from "./gateway.ts";

/** A copy, and its size. */
export interface JsonCopy<Value extends Json> {
  /** Shares nothing with the original. */
  readonly value: Value;
  /** Bytes of it as compact JSON. */
  readonly sizeBytes: number;
}

/** A result with the bytes of its structured part. */
export interface SizedResult {
  readonly result: RunResult;
  readonly sizeBytes: number;
}

/** Copies a value. Throws for one that JSON does not have, such as a cycle. */
export function copyJson<Value extends Json>(value: Value): JsonCopy<Value> {
  const text = JSON.stringify(value);
  return { value: JSON.parse(text) as Value, sizeBytes: Buffer.byteLength(text) };
}

/** Throws GatewayError `INVALID_REQUEST` for what is no JSON object. */
export function argumentsCopy(args: JsonObject): JsonCopy<JsonObject> {
  try {
    const copy = copyJson(args);
    if (isJsonObject(copy.value)) return copy;
  } catch (error) {
    throw invalid("The arguments of a tool have to be JSON", error);
  }
  throw invalid("The arguments of a tool have to be an object");
}

/** Throws GatewayError of `validate_output` for what is no result, or too large. */
export function resultCopy({ structured, artifacts }: RunResult): SizedResult {
  const copy = structuredCopy(structured);
  if (copy.sizeBytes > maxMessageBytes) {
    const message = `The result has ${copy.sizeBytes} bytes; at most ${maxMessageBytes} fit. Save large data as an artifact.`;
    throw new GatewayError("RESOURCE_EXHAUSTED", "validate_output", message, { retryable: false });
  }
  const names = artifacts.map(({ filename, version, mimeType, sizeBytes }) => ({
    ...{ filename, version, mimeType, sizeBytes },
  }));
  return { result: { structured: copy.value, artifacts: names }, sizeBytes: copy.sizeBytes };
}

function structuredCopy(structured: JsonObject): JsonCopy<JsonObject> {
  let cause: unknown;
  try {
    const copy = copyJson(structured);
    if (isJsonObject(copy.value)) return copy;
  } catch (error) {
    cause = error;
  }
  const message = "The tool's result is not a JSON object";
  throw new GatewayError("EXECUTION_ERROR", "validate_output", message, { cause });
}
