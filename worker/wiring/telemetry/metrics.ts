/**
 * The metrics of a worker: what its parts count, and what is read of them when a page is made.
 */
import type { ReconnectingSession } from "../../broker/reconnecting.ts";
import type { Config } from "../../config/config.ts";
import { packageVersion } from "../../config/version.ts";
import type { Manifest } from "../../manifest/manifest.ts";
import type { PoolStats, Starts } from "../../pool/starts.ts";
import type { LentSlots } from "../../invocation/slots/call-slot.ts";
import type { Semaphore } from "../../support/semaphore.ts";
import type { Health, MakePage } from "../../telemetry/health.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import { CallCounts } from "../../telemetry/metrics/call-counts.ts";
import { type Sample, type Samples, only } from "../../telemetry/metrics/catalog.ts";
import { EgressCounts } from "../../telemetry/metrics/egress-counts.ts";
import { LoopDelay } from "../../telemetry/metrics/loop-delay.ts";
import { processSamples } from "../../telemetry/metrics/process-samples.ts";
import { StoreCounts } from "../../telemetry/metrics/store-counts.ts";
import type { Tracing } from "../../telemetry/tracing/open.ts";
import type { Foundation } from "../foundation.ts";
import type { Host } from "../host.ts";

/** Digits of a revision that tell manifests apart. */
const revisionDigits = 12;

/** Parts of a worker that are read when a page is made. */
export interface MeasuredParts {
  readonly foundation: Pick<Foundation, "catalog" | "environments" | "store">;
  readonly session: Pick<ReconnectingSession, "connected" | "connections" | "unconfirmed">;
  readonly slots: ReadonlyMap<string, Pick<Semaphore, "capacity" | "inUse" | "waiting">>;
  readonly lentSlots: Pick<LentSlots, "count">;
  readonly starts: Pick<Starts, "stats">;
  /** Answers without a receiver at the broker. */
  readonly unroutable: () => number;
  /** Conflicts with other workers that make calls run twice. */
  readonly conflicts: () => number;
  /** Undefined without tracing. */
  readonly tracing: Pick<Tracing, "dropped"> | undefined;
}

/** The worker owns it, and disposes it after the health server. */
export class WorkerMetrics implements Disposable {
  readonly egress = new EgressCounts();
  readonly calls: CallCounts;
  readonly store = new StoreCounts();
  /** Makes a page; see {@link openPage}. */
  readonly page: MakePage;
  readonly #health: Pick<Health, "missing" | "warnings">;
  readonly #loop: LoopDelay | undefined;
  /** Read at the start: an upgrade replaces the file below a running worker. */
  readonly #build = { version: packageVersion(), node: process.versions.node };
  #parts: MeasuredParts | undefined;
  #loads = 0;

  constructor(
    { healthPort }: Pick<Config, "healthPort">,
    { clock, log }: Pick<Host, "clock" | "log">,
    health: Pick<Health, "missing" | "warnings">,
  ) {
    this.calls = new CallCounts(
      () => clock.monotonicMs(),
      () => clock.nowMs(),
    );
    this.#health = health;
    if (healthPort !== 0) this.#loop = new LoopDelay();
    this.page = openPage(this.#samples(), log);
  }

  /** Reads these parts from now on. */
  follow(parts: MeasuredParts): void {
    this.#parts = parts;
    this.store.kind = parts.foundation.store.kind;
  }

  /** Call with each manifest that is served: its tools have counts from now on. */
  serve({ tools }: Pick<Manifest, "tools">): void {
    this.#loads++;
    this.egress.serve(tools.keys());
    this.calls.serve(tools.keys());
  }

  [Symbol.dispose](): void {
    this.#loop?.[Symbol.dispose]();
  }

  #samples(): Samples {
    const { egress, calls, store } = this;
    return {
      ...calls.samples,
      ...store.samples,
      ...egress.samples,
      ...processSamples,
      str_slots: () => this.#ofSlots(({ capacity }) => capacity),
      str_slots_used: () => this.#ofSlots(({ inUse }) => inUse),
      str_slots_lent: () => this.#read(({ lentSlots }) => lentSlots.count),
      str_calls_waiting: () => this.#ofSlots(({ waiting }) => waiting),
      str_idle_sandboxes: () => this.#ofPools(({ idle }) => idle),
      str_idle_sandboxes_wanted: () => this.#ofPools(({ target }) => target),
      str_idle_memory_bytes: () => this.#ofPools(({ privateBytes }) => privateBytes),
      str_idle_hits_total: () => this.#ofPools(({ hits }) => hits),
      str_idle_misses_total: () => this.#ofPools(({ misses }) => misses),
      str_idle_refills_total: () => this.#ofPools(({ refills }) => refills),
      str_artifact_cache_hits_total: () =>
        this.#read(({ foundation }) => foundation.store.cached?.hits),
      str_artifact_cache_misses_total: () =>
        this.#read(({ foundation }) => foundation.store.cached?.misses),
      str_broker_connected: () => only(this.#parts?.session.connected === true ? 1 : 0),
      str_broker_connections_total: () => this.#read(({ session }) => session.connections),
      str_broker_unconfirmed_messages: () => this.#read(({ session }) => session.unconfirmed),
      str_answers_unroutable_total: () => this.#read(({ unroutable }) => unroutable()),
      str_group_conflicts: () => this.#read(({ conflicts }) => conflicts()),
      str_ready: () => only(this.#health.missing().length === 0 ? 1 : 0),
      str_warnings: () => only(this.#health.warnings?.().length ?? 0),
      str_tools: () => this.#tools(),
      str_manifest_info: () => this.#manifest(),
      str_manifest_loads_total: () => only(this.#loads),
      str_manifest_usable: () =>
        this.#read(({ foundation }) => (foundation.catalog.isUsable ? 1 : 0)),
      str_environments: () => this.#environments(),
      str_spans_dropped_total: () => this.#read(({ tracing }) => tracing?.dropped),
      str_build_info: () => [{ labels: this.#build, value: 1 }],
      str_event_loop_delay_seconds: () =>
        this.#loop === undefined ? [] : only(this.#loop.seconds),
    };
  }

  /** No value while there are no parts, or they have none. */
  #read(read: (parts: MeasuredParts) => number | undefined): readonly Sample[] {
    const value = this.#parts && read(this.#parts);
    return value === undefined ? [] : only(value);
  }

  #ofSlots(
    read: (slots: Pick<Semaphore, "capacity" | "inUse" | "waiting">) => number,
  ): readonly Sample[] {
    return Array.from(this.#parts?.slots ?? [], ([queue, slots]) => ({
      labels: { queue },
      value: read(slots),
    }));
  }

  /** Those of programs have a pool for each interpreter. */
  #ofPools(read: (stats: PoolStats) => number): readonly Sample[] {
    const sums = new Map<string, { labels: Record<string, string>; value: number }>();
    for (const stats of this.#parts?.starts.stats ?? []) {
      const { tool, profile } = stats;
      const key = JSON.stringify([tool, profile]);
      const before = sums.get(key)?.value ?? 0;
      sums.set(key, { labels: { tool, profile }, value: before + read(stats) });
    }
    return [...sums.values()];
  }

  #tools(): readonly Sample[] {
    if (this.#parts === undefined) return [];
    const { tools, unavailable } = this.#parts.foundation.catalog.manifest;
    return [
      { labels: { state: "served" }, value: tools.size },
      { labels: { state: "unavailable" }, value: unavailable.size },
    ];
  }

  #manifest(): readonly Sample[] {
    if (this.#parts === undefined) return [];
    const { revision } = this.#parts.foundation.catalog.manifest;
    return [{ labels: { revision: revision.slice(0, revisionDigits) }, value: 1 }];
  }

  #environments(): readonly Sample[] {
    const counts = this.#parts?.foundation.environments.counts;
    if (counts === undefined) return [];
    return (["ready", "installing", "failed"] as const).map((state) => ({
      labels: { state },
      value: counts[state],
    }));
  }
}

/**
 * Makes pages of these metrics. The first page loads the library; an unscraped worker saves its
 * memory. Rejects where one cannot be made; the log has the first cause.
 */
export function openPage(samples: Samples, log: EventLog<"warn">): MakePage {
  let loading: Promise<MakePage> | undefined;
  let hasFailed = false;
  return async (accept) => {
    try {
      loading ??= load(samples);
      const makePage = await loading;
      return await makePage(accept);
    } catch (error) {
      // The next request tries again: a cause such as too many open files passes.
      loading = undefined;
      if (!hasFailed) logEvent(log, "metrics.failed", { err: error });
      hasFailed = true;
      throw error;
    }
  };
}

async function load(samples: Samples): Promise<MakePage> {
  const { exposition } = await import("../../telemetry/metrics/exposition.ts");
  return exposition(samples);
}
