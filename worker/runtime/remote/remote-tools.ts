/**
 * Tools of other workers, which running tools of this one may call: the worker publishes their
 * calls as an agent does, over its own session.
 */
import { StoreError } from "../../artifacts/store.ts";
import type { ReconnectingSession } from "../../broker/reconnecting.ts";
import { type DispatchResult, errorOfRun, gatewayErrorOf } from "../../gateway/dispatch.ts";
import { GatewayError } from "../../gateway/gateway.ts";
import { RemoteDirectory, remoteBackend } from "../../gateway/remote.ts";
import { NotStartedError } from "../../invocation/claims/claims.ts";
import type { GatewayCall } from "../../invocation/steps/gateway.ts";
import type { Manifest } from "../../manifest/manifest.ts";
import { type ErrorCode, InvocationError, errorCodes } from "../../protocol/errors.ts";
import { maxMessageBytes } from "../../protocol/limits.ts";
import { readAnswer } from "../../protocol/messages/answer.ts";
import { traceIdOf } from "../../protocol/trace-context.ts";
import type { Clock } from "../../support/clock.ts";
import { decodeJson, offThreadAboveBytes } from "../../support/json/json-decoder.ts";
import { JsonError } from "../../support/json/json.ts";
import { Semaphore } from "../../support/semaphore.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type InnerCall, cancelledCall, innerLog, timeOf, traceparentOf } from "../inner-call.ts";
import { Exchanges, maxWaitingCalls } from "./exchanges.ts";
import { Learning } from "./learning.ts";
import { Replies } from "./replies.ts";
import { requestOf } from "./request.ts";
import { resultOf } from "./result.ts";

/** Threads that parse large answers. */
const maxParserThreads = 2;

/** Dependencies of {@link RemoteTools}. */
export interface RemoteParts {
  readonly session: Pick<ReconnectingSession, "publish" | "subscribe" | "connection">;
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Its owner disposes it before the session, and after the last call. */
export class RemoteTools implements AsyncDisposable {
  readonly directory = new RemoteDirectory();
  readonly #parts: RemoteParts;
  readonly #replies: Replies;
  readonly #learning: Learning;
  readonly #exchanges: Exchanges;
  readonly #largeAnswers = new Semaphore({
    capacity: maxParserThreads,
    maxWaiting: maxWaitingCalls,
  });

  constructor(parts: RemoteParts) {
    this.#parts = parts;
    const replies = new Replies(parts);
    this.#replies = replies;
    this.#learning = new Learning({ ...parts, directory: this.directory, replies });
    this.#exchanges = new Exchanges({ ...parts, replies });
  }

  /** Follows what the entries of a manifest list. */
  follow({ tools }: Pick<Manifest, "tools">): void {
    this.directory.follow(tools.values().flatMap(({ gateway }) => gateway?.remote ?? []));
    this.#learning.follow();
  }

  /**
   * Calls a tool for a running one. Throws GatewayError. On abort it cancels the call, and does not
   * wait for its end.
   */
  async call(outer: GatewayCall, call: InnerCall, signal: AbortSignal): Promise<DispatchResult> {
    const { clock } = this.#parts;
    const traceparent = traceparentOf(outer);
    const log = innerLog(this.#parts.log, outer, call, traceparent && traceIdOf(traceparent));
    const { audit: outerAudit, signal: shutdown } = outer.context;
    const audit = outerAudit?.inner(call.callId, call.toolName);
    const startMs = clock.monotonicMs();
    let ending: "ok" | ErrorCode = "INTERNAL_ERROR";
    let backend: string | undefined;
    logEvent(log, "tool_call.received");
    try {
      await audit?.start({ preloaded: new Map() }, shutdown);
      const onSend = (): void => {
        backend = remoteBackend;
        if (audit !== undefined) audit.started = true;
      };
      const result = await this.#exchange(outer, call, onSend, signal);
      ending = "ok";
      return result;
    } catch (error) {
      const { code, op } = gatewayErrorOf(error);
      ending = errorCodes.find((each) => each === code) ?? ending;
      throw errorOfRun(error, op === "select_backend" ? undefined : backend);
    } finally {
      audit?.end(ending);
      const durationMs = Math.round(clock.monotonicMs() - startMs);
      logEvent(log, "tool_call.ended", { outcome: ending, durationMs });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#learning[Symbol.asyncDispose]();
    await this.#exchanges[Symbol.asyncDispose]();
    await this.#replies[Symbol.asyncDispose]();
  }

  async #exchange(
    outer: GatewayCall,
    call: InnerCall,
    onSend: () => void,
    signal: AbortSignal,
  ): Promise<DispatchResult> {
    const { namespace, clock } = this.#parts;
    const { leftMs } = timeOf(outer, clock.nowMs());
    const { signal: shutdown, cancelSignal = shutdown } = outer.context;
    const stopped = AbortSignal.any([signal, shutdown, cancelSignal]);
    const announcement = this.directory.get(call.toolName);
    const { name: agent } = this.#replies;
    const answer = await this.#exchanges.run(
      {
        leftMs,
        requestFor: (reply) =>
          requestOf(outer, call, { namespace, reply, agent, leftMs, announcement }),
        onSend: async () => {
          await begin(outer);
          outer.context.onWaiting?.();
          onSend();
        },
      },
      stopped,
    );
    return resultOf(readAnswer(await this.#decode(answer, stopped)));
  }

  /** Throws GatewayError for what is too large, and for what is no JSON. */
  async #decode(payload: Uint8Array, signal: AbortSignal): Promise<unknown> {
    const { byteLength } = payload;
    if (byteLength > maxMessageBytes) {
      const message = `The answer has ${byteLength} bytes; at most ${maxMessageBytes} are read`;
      throw new GatewayError("RESOURCE_EXHAUSTED", "validate_output", message, {
        retryable: false,
      });
    }
    using _permit =
      byteLength > offThreadAboveBytes ? await this.#largeAnswers.acquire(signal) : undefined;
    try {
      return await decodeJson(payload, signal);
    } catch (cause) {
      if (!(cause instanceof JsonError)) throw cause;
      const message = `The worker's answer cannot be used: it is ${cause.message}`;
      throw new GatewayError("EXECUTION_ERROR", "validate_output", message, { cause });
    }
  }
}

/**
 * Nothing is known of another worker's tool: only the calling entry can say that it may run twice.
 * Throws InvocationError.
 */
async function begin({ tool, onBegin }: GatewayCall): Promise<void> {
  try {
    await onBegin({ idempotent: tool.gateway?.isIdempotent ?? false });
  } catch (cause) {
    if (cause instanceof NotStartedError) throw cancelledCall();
    if (!(cause instanceof StoreError)) throw cause;
    throw new InvocationError("ARTIFACT_ERROR", cause.message, { cause });
  }
}
