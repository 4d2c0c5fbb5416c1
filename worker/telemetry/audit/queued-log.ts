/**
 * The audit log: lines wait in memory, and one writer appends them in order.
 */
import type { Clock } from "../../support/clock.ts";
import { abortable, settlesWithin, withTimeout } from "../../support/timeout.ts";
import { type EventLog, logEvent } from "../log-event.ts";
import { AuditError, type AuditLog } from "./audit.ts";
import { type AuditEvent, auditVersion } from "./event.ts";
import { encodeLine } from "./line.ts";
import type { AuditSink } from "./sinks.ts";

/** Bytes of the lines in memory, some ten thousand lines; further lines are lost and counted. */
export const maxWaitingBytes = 4 * 1024 * 1024;

/** Milliseconds that a call waits for a line. */
export const requiredTimeoutMs = 5_000;

/** Milliseconds between two attempts to write to a log that fails. */
export const retryMs = 1_000;

/** Milliseconds for the lines in memory when the worker ends. */
export const closeTimeoutMs = 2_000;

/** Milliseconds between two attempts, and number of them, while the reader of a pipe is slow. */
const [busyMs, maxBusyAttempts] = [20, 100];

/** Dependencies of an audit log, which owns the sink. */
export interface QueuedLogParts {
  readonly sink: AuditSink;
  readonly workerId: string;
  /** Whether calls fail while the log cannot be written. */
  readonly isRequired: boolean;
  readonly clock: Clock;
  readonly log: EventLog<"info" | "error">;
}

interface WaitingLine {
  readonly bytes: Buffer;
  /** Settles a call that waits for the line. */
  readonly written: PromiseWithResolvers<void> | undefined;
}

/** Public, for health probes. */
const problem = "the audit log cannot be written";

export class QueuedAuditLog implements AuditLog {
  readonly #parts: QueuedLogParts;
  readonly #lines: WaitingLine[] = [];
  readonly #closing = new AbortController();
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  /** Why the log cannot be written at present. */
  #failure: AuditError | undefined;
  /** Lines lost since the log could be written. */
  #lost = 0;

  constructor(parts: QueuedLogParts) {
    this.#parts = parts;
  }

  get notReadyReasons(): readonly string[] {
    return this.#parts.isRequired && this.#failure !== undefined ? [problem] : [];
  }

  get warnings(): readonly string[] {
    return !this.#parts.isRequired && this.#failure !== undefined ? [problem] : [];
  }

  record(event: AuditEvent): void {
    this.#enqueue(event, undefined);
  }

  async require(event: AuditEvent, signal: AbortSignal): Promise<void> {
    const { clock, isRequired } = this.#parts;
    const failed = this.#failure;
    if (failed !== undefined) {
      this.#enqueue(event, undefined);
      signal.throwIfAborted();
      if (isRequired) throw failed;
      return;
    }
    const written = Promise.withResolvers<void>();
    this.#enqueue(event, written);
    await withTimeout(requiredTimeoutMs, clock, signal, (within) =>
      abortable(written.promise, within),
    ).catch((error: unknown) => {
      signal.throwIfAborted();
      const failure = error instanceof AuditError ? error : this.fail(error);
      if (isRequired) throw failure;
    });
  }

  /** Reports a failure, once until the log is written again. Calls that wait for lines fail. */
  fail(cause: unknown): AuditError {
    const failure = this.#report(cause);
    for (const { written } of this.#lines) written?.reject(failure);
    return failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { sink, clock, log } = this.#parts;
    this.#closing.abort(new Error("the worker ends"));
    const writing = this.#writing ?? Promise.resolve();
    const isIdle = await settlesWithin(writing, closeTimeoutMs, clock);
    const lost = this.#lost + this.#lines.length;
    if (lost > 0) logEvent(log, "audit.lines_lost", { lost });
    // Closing would wait for a write that hangs.
    if (isIdle) await sink[Symbol.asyncDispose]();
  }

  #report(cause: unknown): AuditError {
    if (this.#failure !== undefined) return this.#failure;
    const failure = new AuditError(cause);
    this.#failure = failure;
    const { log, isRequired } = this.#parts;
    logEvent(log, "audit.failed", { err: failure, isRequired });
    return failure;
  }

  #enqueue(event: AuditEvent, written: PromiseWithResolvers<void> | undefined): void {
    const { workerId: worker, clock } = this.#parts;
    const time = new Date(clock.nowMs()).toISOString();
    const bytes = encodeLine({ ...event, audit: auditVersion, time, worker });
    if (this.#waitingBytes + bytes.byteLength > maxWaitingBytes) {
      this.#lost++;
      const failure = this.#report(new Error("more lines wait than memory may hold"));
      written?.reject(failure);
      return;
    }
    this.#lines.push({ bytes, written });
    this.#waitingBytes += bytes.byteLength;
    this.#writing ??= this.#write();
  }

  /** Writes until no line waits. Never rejects. */
  async #write(): Promise<void> {
    for (let line = this.#lines[0]; line !== undefined; line = this.#lines[0]) {
      try {
        await this.#append(line.bytes);
      } catch (error) {
        this.fail(error);
        if (this.#closing.signal.aborted) break;
        await this.#pause(retryMs);
        continue;
      }
      this.#lines.shift();
      this.#waitingBytes -= line.bytes.byteLength;
      this.#recover();
      line.written?.resolve();
    }
    this.#writing = undefined;
  }

  async #append(bytes: Buffer): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#parts.sink.append(bytes);
        return;
      } catch (error) {
        const isBusy = error instanceof Error && "code" in error && error.code === "EAGAIN";
        if (!isBusy || attempt === maxBusyAttempts) throw error;
        await this.#pause(busyMs);
      }
    }
  }

  #recover(): void {
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    logEvent(this.#parts.log, "audit.recovered", { lost: this.#lost });
    this.#lost = 0;
  }

  /** Ends early while the log closes. */
  async #pause(ms: number): Promise<void> {
    const { clock } = this.#parts;
    await clock.sleep(ms, this.#closing.signal).catch(() => undefined);
  }
}
