/**
 * The artifact store of one call, which records each access in the audit log.
 */
import {
  type ArtifactStore,
  NotDeletedError,
  type OpenedArtifact,
  StoreError,
} from "../../artifacts/store.ts";
import { InvocationError } from "../../protocol/errors.ts";
import { AuditError } from "../../telemetry/audit/audit.ts";
import type { AuditEventName } from "../../telemetry/audit/event.ts";
import type { CallAudit } from "./call-audit.ts";

/** An open version of a call. */
export interface CallArtifact extends OpenedArtifact {
  /** Records what keeps the content from the tool. Absent without an audit log. */
  failed?(error: unknown): void;
}

/** The part of a store that calls use. */
export interface CallStore extends Pick<ArtifactStore, "save" | "deleteVersion"> {
  open(...parameters: Parameters<ArtifactStore["open"]>): Promise<CallArtifact>;
}

/** Milliseconds for deleting a version that could not be recorded. */
const takeBackTimeoutMs = 5_000;

/**
 * Records before content goes to a tool, and before a saved version is reported. Where the log is
 * required and cannot be written, methods reject with StoreError `unavailable`; `save` with
 * NotDeletedError around an error after which its version exists.
 */
export function auditedStore(store: CallStore, audit: CallAudit | undefined): CallStore {
  if (audit === undefined) return store;
  const deleteVersion: CallStore["deleteVersion"] = async (scope, filename, saved, signal) => {
    const access = new Access(audit, "artifact.delete", filename, saved.version);
    const isDeleted = await access.of(store.deleteVersion(scope, filename, saved, signal), signal);
    access.record(isDeleted ? ok : { outcome: "ARTIFACT_ERROR", reason: "not-found" });
    return isDeleted;
  };
  return {
    deleteVersion,
    async open(scope, reference, signal, accept) {
      const { filename, version } = reference;
      const access = new Access(audit, "artifact.read", filename, version);
      const opened = await access.of(store.open(scope, reference, signal, accept), signal);
      const failed = (error: unknown): void =>
        access.record({ ...endOf(error, signal), version: opened.version });
      // Until it is read nothing else listens. Its reader meets the error again.
      opened.body.on("error", () => undefined);
      try {
        const { sizeBytes } = opened;
        await access.require({ ...ok, version: opened.version, sizeBytes }, signal);
      } catch (error) {
        failed(error);
        opened.body.destroy();
        throw error;
      }
      return { ...opened, failed };
    },
    async save(scope, filename, source, metadata, signal) {
      const { sizeBytes } = source;
      const access = new Access(audit, "artifact.write", filename, undefined, sizeBytes);
      const saving = store.save(scope, filename, source, metadata, signal);
      const saved = await access.of(saving, signal);
      try {
        await access.require({ ...ok, version: saved.version }, signal);
      } catch (error) {
        // The line of the deletion waits in memory; it says whether the version is gone.
        // A stopped call does not wait for it, and deletes the version with its others.
        const over = AbortSignal.any([signal, AbortSignal.timeout(takeBackTimeoutMs)]);
        await deleteVersion(scope, filename, saved, over).catch(() => {
          throw new NotDeletedError(saved, error);
        });
        throw error;
      }
      return saved;
    },
  };
}

/** Facts of an access after its end. */
export interface AccessEnd {
  readonly outcome: "ok" | "ARTIFACT_ERROR" | "cancelled";
  readonly reason?: string;
  readonly version?: number;
  readonly sizeBytes?: number;
}

const ok: AccessEnd = { outcome: "ok" };

const cancelled: AccessEnd = { outcome: "cancelled" };

/** One access to an artifact. */
class Access {
  readonly #audit: CallAudit;
  readonly #facts: {
    readonly event: AuditEventName;
    readonly artifact: string;
    readonly version: number | undefined;
    readonly sizeBytes: number | undefined;
  };
  readonly #startMs: number;

  constructor(
    audit: CallAudit,
    event: AuditEventName,
    artifact: string,
    version: number | undefined,
    sizeBytes?: number,
  ) {
    this.#audit = audit;
    this.#facts = { event, artifact, version, sizeBytes };
    this.#startMs = audit.nowMs();
  }

  /** Waits for the store, and records its failure. */
  async of<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
    try {
      return await result;
    } catch (error) {
      this.record(endOf(error, signal));
      throw error;
    }
  }

  record(end: AccessEnd): void {
    this.#audit.record(this.#eventOf(end));
  }

  async require(end: AccessEnd, signal: AbortSignal): Promise<void> {
    try {
      await this.#audit.require(this.#eventOf(end), signal);
    } catch (error) {
      if (!(error instanceof AuditError)) throw error;
      throw new StoreError("unavailable", error.message, { cause: error });
    }
  }

  #eventOf(end: AccessEnd) {
    return { ...this.#facts, ...end, durationMs: this.#audit.msSince(this.#startMs) };
  }
}

/** How an access failed. The signal's reason may be the failure of another access of the call. */
export function endOf(error: unknown, signal: AbortSignal): AccessEnd {
  return signal.aborted && error === signal.reason ? cancelled : failureOf(error);
}

function failureOf(error: unknown): AccessEnd {
  const outcome = "ARTIFACT_ERROR";
  if (error instanceof StoreError) return { outcome, reason: error.reason };
  return { outcome, reason: error instanceof InvocationError ? "refused" : "unavailable" };
}
