/**
 * The thread of `json-decoder.ts`: parses one document and ends.
 */
import { parentPort, workerData } from "node:worker_threads";
import { JsonError, type JsonLimits, parseJson } from "./json.ts";
import type { DecodedMessage } from "./json-decoder.ts";

const { bytes, limits } = workerData as { bytes: Uint8Array; limits: JsonLimits };

function decode(): DecodedMessage {
  try {
    return { ok: true, value: parseJson(bytes, limits) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { ok: false, reason: error.reason, message: error.message };
  }
}

parentPort?.postMessage(decode());
