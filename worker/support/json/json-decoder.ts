/**
 * Decodes JSON of any accepted size without blocking the event loop.
 */
import { Worker } from "node:worker_threads";
import { extname } from "node:path";
import { type Json, JsonError, type JsonLimits, defaultJsonLimits, parseJson } from "./json.ts";

/** A thread parses larger documents; smaller ones take a few milliseconds. */
export const offThreadAboveBytes = 1024 * 1024;

/** The thread's answer. */
export type DecodedMessage =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly reason: JsonError["reason"]; readonly message: string };

/**
 * `parseJson`, in a worker thread for documents above `offThreadAboveBytes`. Rejects with JsonError
 * or the signal's reason. Callers bound the concurrency.
 */
export async function decodeJson(
  bytes: Uint8Array,
  signal: AbortSignal,
  limits: JsonLimits = defaultJsonLimits,
): Promise<Json> {
  signal.throwIfAborted();
  if (bytes.byteLength <= offThreadAboveBytes) return parseJson(bytes, limits);
  // Compiled code loads the compiled thread, source loads source.
  const thread = new Worker(new URL(`./json-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: { bytes, limits },
    // Neither are options of the process: some, such as --input-type, let no thread start.
    ...{ env: {}, execArgv: [] },
  });
  const stop = (): void => void thread.terminate();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const message = await new Promise<DecodedMessage>((resolve, reject) => {
      thread.once("message", resolve);
      thread.once("error", reject);
      thread.once("exit", () => reject(new Error("the JSON thread ended without an answer")));
    });
    if (message.ok) return message.value;
    throw new JsonError(message.reason, message.message);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    await thread.terminate();
  }
}
