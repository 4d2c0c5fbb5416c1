/**
 * The request of a delivery: decodes JSON, large requests in threads, and takes the tool from the
 * topic.
 */
import { InvocationError } from "../protocol/errors.ts";
import type { Invocation } from "../protocol/invocation.ts";
import { maxMessageBytes } from "../protocol/limits.ts";
import { isProbe, readId, unknownId } from "../protocol/messages/request.ts";
import { parseInvokeTopic } from "../protocol/topics.ts";
import type { Clock } from "../support/clock.ts";
import { decodeJson, offThreadAboveBytes } from "../support/json/json-decoder.ts";
import { JsonError } from "../support/json/json.ts";
import type { Semaphore } from "../support/semaphore.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";

/** Dependencies of {@link readRequest}. */
export interface ReadParts {
  /** Bounds the threads that parse large requests. */
  readonly largeRequests: Semaphore;
  readonly clock: Clock;
}

/** A request whose JSON is decoded and whose fields are not checked yet. */
export interface ReadRequest {
  /** `unknown` where the request has no usable id. */
  readonly id: string;
  /** Whether the request only asks if a worker serves the tool. */
  readonly isProbe: boolean;
  /** Start of the decoding, on the monotonic clock. */
  readonly receivedMs: number;
  readonly document: unknown;
  /** Why there is no document: an InvocationError, or the reason of the aborted signal. */
  readonly problem?: unknown;
}

/** Decodes a request. Never rejects. */
export async function readRequest(
  { largeRequests, clock }: ReadParts,
  payload: Uint8Array,
  signal: AbortSignal,
): Promise<ReadRequest> {
  const receivedMs = clock.monotonicMs();
  try {
    const document = await readDocument(payload, largeRequests, signal);
    return { id: readId(document), isProbe: isProbe(document), receivedMs, document };
  } catch (problem) {
    return { id: unknownId, isProbe: false, receivedMs, document: undefined, problem };
  }
}

/**
 * Throws InvocationError `RESOURCE_EXHAUSTED` for a request that is too large, `INVALID_REQUEST`
 * for one that is no JSON. Rejects with the signal's reason.
 */
async function readDocument(
  payload: Uint8Array,
  largeRequests: Semaphore,
  signal: AbortSignal,
): Promise<unknown> {
  if (payload.byteLength > maxMessageBytes) {
    throw new InvocationError(
      "RESOURCE_EXHAUSTED",
      `The request has ${payload.byteLength} bytes; at most ${maxMessageBytes} are accepted`,
    );
  }
  using _permit =
    payload.byteLength > offThreadAboveBytes ? await largeRequests.acquire(signal) : undefined;
  try {
    return await decodeJson(payload, signal);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new InvocationError("INVALID_REQUEST", `Invalid request: ${error.message}`, {
      cause: error,
    });
  }
}

/** Bounds the memory for {@link TopicTools}; a worker serves fewer tools. */
const maxWarnedTools = 10_000;
/** Characters of a tool name in the log. */
const maxLoggedName = 100;

/**
 * Names each call by the tool of its topic, since brokers grant access by topic. A request that
 * names another tool is logged, once for each tool.
 */
export class TopicTools {
  readonly #namespace: string;
  readonly #log: EventLog<"warn">;
  readonly #warned = new Set<string>();

  constructor(namespace: string, log: EventLog<"warn">) {
    this.#namespace = namespace;
    this.#log = log;
  }

  /** Throws InvocationError `INVALID_REQUEST` for a topic that names no tool. */
  callOf(topic: string, invocation: Invocation): Invocation {
    const tool = parseInvokeTopic(this.#namespace, topic);
    if (tool === undefined)
      throw new InvocationError("INVALID_REQUEST", "Invalid request: its topic names no tool");
    const { toolName } = invocation;
    if (toolName === tool) return invocation;
    if (!this.#warned.has(tool) && this.#warned.size < maxWarnedTools) {
      this.#warned.add(tool);
      const facts = { tool, named: toolName.slice(0, maxLoggedName) };
      logEvent(this.#log, "request.tool_name_differs", facts);
    }
    return Object.freeze({ ...invocation, toolName: tool });
  }
}
