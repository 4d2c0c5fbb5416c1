/**
 * The request of a delivery, read: large ones by threads, and each for the tool that its topic
 * names.
 */
import { InvocationError } from "../protocol/errors.ts";
import type { Invocation } from "../protocol/invocation.ts";
import { maxMessageBytes } from "../protocol/limits.ts";
import { parseInvokeTopic } from "../protocol/topics.ts";
import { decodeJson, offThreadAboveBytes } from "../support/json/json-decoder.ts";
import { JsonError } from "../support/json/json.ts";
import type { Semaphore } from "../support/semaphore.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";

/**
 * The request as a document. Throws InvocationError `RESOURCE_EXHAUSTED` for one that is too large,
 * `INVALID_REQUEST` for what is no JSON; rejects with the signal's reason.
 *
 * @param largeRequests turns for requests that are parsed by threads of their own
 */
export async function readDocument(
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
  using _turn =
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

/** Tools whose requests have named another one; a worker serves fewer. */
const maxWarnedTools = 10_000;
/** Characters of such a name in the log. */
const maxLoggedName = 100;

/**
 * Has each call reach the tool of its topic, as a broker grants access by topic. What the request
 * says does not count, and is logged once for each tool.
 */
export class TopicTools {
  readonly #namespace: string;
  readonly #log: EventLog<"warn">;
  readonly #warned = new Set<string>();

  constructor(namespace: string, log: EventLog<"warn">) {
    this.#namespace = namespace;
    this.#log = log;
  }

  /**
   * The call with the name of its topic. Throws InvocationError `INVALID_REQUEST` for the topic of
   * no tool.
   */
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
