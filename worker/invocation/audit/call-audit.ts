/**
 * The audit lines of one delivery, or of one call by a tool: its start and end, and each access to
 * an artifact.
 */
import { createHash } from "node:crypto";
import type { Delivery } from "../../broker/broker.ts";
import { type ErrorCode, InvocationError } from "../../protocol/errors.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import { readNames } from "../../protocol/messages/request.ts";
import { parseInvokeTopic } from "../../protocol/topics.ts";
import type { EndedConnection } from "../../sandbox/network/sockets.ts";
import type { Clock } from "../../support/clock.ts";
import { AuditError, type AuditLog } from "../../telemetry/audit/audit.ts";
import type { AuditEvent } from "../../telemetry/audit/event.ts";
import { shortened } from "../../telemetry/audit/line.ts";

/** Hex digits of the deduplication key that name a call. */
const callDigits = 16;

/** Longest text of rules in a line, in bytes with its quotes. */
export const maxRuleBytes = 200;

/**
 * The end of a delivery. `duplicate`: settled by the answer of another delivery. `rejected`:
 * dropped, since it has no usable reply topic. `unanswered`: its answer could not be published.
 */
export type CallEnd = "ok" | ErrorCode | "requeued" | "duplicate" | "rejected" | "unanswered";

/** Dependencies of the audit of calls. */
export interface AuditParts {
  /** Undefined without an audit log. */
  readonly audit?: AuditLog | undefined;
  readonly namespace: string;
  readonly clock: Clock;
}

/** Facts of all lines of a call. */
type CallFacts = Pick<
  AuditEvent,
  "call" | "tool" | "parent" | "request" | "task" | "agent" | "user" | "session"
>;

type OwnFacts = Omit<AuditEvent, keyof CallFacts>;

/** Its owner creates it for each delivery and each call by a tool, and ends it once. */
export class CallAudit {
  /** Whether the tool may have run at this delivery. */
  started = false;
  readonly #log: AuditLog;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #startMs: number;
  #facts: CallFacts;

  private constructor(log: AuditLog, clock: Pick<Clock, "monotonicMs">, facts: CallFacts) {
    this.#log = log;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
    this.#facts = facts;
  }

  /**
   * Undefined without an audit log.
   *
   * @param key the deduplication key; undefined for a message without a reply topic
   */
  static of(
    { audit, namespace, clock }: AuditParts,
    { topic }: Pick<Delivery, "topic">,
    key: string | undefined,
  ): CallAudit | undefined {
    if (audit === undefined) return undefined;
    const digest = key && Buffer.from(key, "base64").toString("hex").slice(0, callDigits);
    const tool = parseInvokeTopic(namespace, topic);
    return new CallAudit(audit, clock, { call: digest, tool });
  }

  /** The lines of a call that the tool of this one makes, in the same caller's name. */
  inner(callId: string, tool: string): CallAudit {
    const call = createHash("sha256").update(callId).digest("hex").slice(0, callDigits);
    return new CallAudit(this.#log, this.#clock, {
      ...this.#facts,
      call,
      tool,
      parent: this.#facts.call,
    });
  }

  /** Adds what a request, valid or not, says of its caller. */
  identify(document: unknown): void {
    const { id, taskId, appName, userId, sessionId } = readNames(document);
    // Once for all lines: a long text costs its digest.
    const [request, task, agent, user, session] = [id, taskId, appName, userId, sessionId].map(
      (name) => name && shortened(name),
    );
    this.#facts = { ...this.#facts, request, task, agent, user, session };
  }

  /**
   * Records the start of a valid call and the artifacts in its request. Throws InvocationError
   * `TOOL_NOT_AVAILABLE` when the log is required and cannot be written.
   */
  async start({ preloaded }: Pick<Invocation, "preloaded">, signal: AbortSignal): Promise<void> {
    const sent = Array.from(preloaded.values(), ({ filename, version, bytes }) => ({
      event: "artifact.read" as const,
      source: "request",
      artifact: filename,
      version,
      sizeBytes: bytes.byteLength,
      outcome: "ok",
    }));
    try {
      // One at a time: a call with many artifacts leaves the memory of the log to other calls.
      for (const facts of [{ event: "call.start" as const }, ...sent]) {
        await this.require(facts, signal);
      }
    } catch (error) {
      if (!(error instanceof AuditError)) throw error;
      throw new InvocationError("TOOL_NOT_AVAILABLE", error.message, { cause: error });
    }
  }

  /** Records the end of the delivery. */
  end(outcome: CallEnd): void {
    const durationMs = this.msSince(this.#startMs);
    this.record({ event: "call.end", outcome, started: this.started, durationMs });
  }

  /** Records a connection of the call's sandbox that has ended or was refused. */
  recordConnection(connection: EndedConnection): void {
    this.record(egressFacts(connection));
  }

  record(facts: OwnFacts): void {
    this.#log.record({ ...this.#facts, ...facts });
  }

  /** Rejects as `AuditLog.require` does. */
  require(facts: OwnFacts, signal: AbortSignal): Promise<void> {
    return this.#log.require({ ...this.#facts, ...facts }, signal);
  }

  nowMs(): number {
    return this.#clock.monotonicMs();
  }

  msSince(startMs: number): number {
    return Math.round(this.nowMs() - startMs);
  }
}

function egressFacts({ refusal, rules, refusedPart: _, ...facts }: EndedConnection): OwnFacts {
  return {
    ...facts,
    event: "egress",
    verdict: refusal === undefined ? "allowed" : "refused",
    rule: rules.length === 0 ? undefined : shortened(rules.join("; "), maxRuleBytes),
    reason: refusal,
  };
}
