/**
 * Calls a hostile tool by the path of a production call, and records the observation.
 */
import { buffer } from "node:stream/consumers";
import type { ArtifactStore } from "../../artifacts/store.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import { systemClock } from "../../support/clock.ts";
import { newId } from "../../support/ids.ts";
import type { JsonObject } from "../../support/json/json.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Observation, Target } from "./attack.ts";
import type { AttackedWorker } from "./attacked-worker.ts";
import { withPythonNames } from "../program.ts";
import { StallWatch } from "./stall-watch.ts";

/** Time limit of one call, in seconds; attacks end by themselves within ten on an idle host. */
export const callTimeoutSeconds = 60;
/** Recorded statuses of one call. */
const maxStatuses = 10_000;

/** Records each saved artifact. Disposing it disposes the store below. */
export class RecordingStore implements ArtifactStore {
  readonly kind: string;
  readonly open: ArtifactStore["open"];
  readonly stat: ArtifactStore["stat"];
  readonly save: ArtifactStore["save"];
  readonly deleteVersion: ArtifactStore["deleteVersion"];
  readonly names: ArtifactStore["names"];
  readonly versions: ArtifactStore["versions"];
  readonly check: ArtifactStore["check"];
  readonly #store: ArtifactStore;
  #saved = new Map<string, Uint8Array>();

  constructor(store: ArtifactStore) {
    this.#store = store;
    this.kind = store.kind;
    this.open = store.open.bind(store);
    this.stat = store.stat.bind(store);
    this.deleteVersion = store.deleteVersion.bind(store);
    this.names = store.names.bind(store);
    this.versions = store.versions.bind(store);
    this.check = store.check.bind(store);
    this.save = async (scope, filename, source, metadata, signal) => {
      const saved = await store.save(scope, filename, source, metadata, signal);
      const reference = { filename, version: saved.version };
      const { body } = await store.open(scope, reference, signal);
      this.#saved.set(filename, await buffer(body));
      return saved;
    };
  }

  /** Artifacts saved since the last call of this method, by name. */
  take(): ReadonlyMap<string, Uint8Array> {
    const saved = this.#saved;
    this.#saved = new Map();
    return saved;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }
}

/** Dependencies of {@link callAttack}. */
export interface CallParts extends Pick<AttackedWorker, "invoker" | "takeAskedNames"> {
  readonly store: RecordingStore;
  readonly log: Logger;
}

/** A tool to call, and the code that it is to run if it runs programs. */
export interface Called {
  readonly toolName: string;
  readonly code: string | undefined;
}

/** Calls a tool with a target, and observes the call. */
export async function callAttack(
  { invoker, store, log, takeAskedNames }: CallParts,
  { toolName, code }: Called,
  target: Target,
  signal: AbortSignal,
): Promise<Observation> {
  const given = { target: withPythonNames(target) as JsonObject };
  const args = code === undefined ? given : { language: "python", code, inputs: given };
  const statuses: string[] = [];
  store.take();
  takeAskedNames();
  using stalls = new StallWatch();
  const startMs = systemClock.monotonicMs();
  const outcome = await invoker.invoke(invocationOf(toolName, args), {
    signal,
    waitSignal: signal,
    log,
    onStatus: (text) => {
      if (statuses.length < maxStatuses) statuses.push(text);
    },
  });
  return {
    outcome,
    statuses,
    artifacts: store.take(),
    askedNames: takeAskedNames(),
    longestStallMs: stalls.longestMs,
    durationMs: Math.round(systemClock.monotonicMs() - startMs),
    target,
  };
}

/** A call as an agent would make it. */
export function invocationOf(
  toolName: string,
  args: JsonObject,
  timeoutSeconds = callTimeoutSeconds,
): Invocation {
  return {
    id: newId(),
    taskId: newId(),
    toolName,
    args,
    toolConfig: {},
    caller: { appName: "doctor", userId: "doctor", sessionId: "attack" },
    references: new Map(),
    preloaded: new Map(),
    timeoutSeconds,
    requestedProfile: undefined,
    replyTo: "doctor",
    statusTo: "doctor",
    sentAtMs: systemClock.nowMs(),
  };
}
