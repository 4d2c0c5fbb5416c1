/**
 * Samples of a worker, one a second, merged into a bounded number of points for the plot.
 */
import type { MetricValues } from "../../test/support/metrics/metrics-page.ts";
import type { Delays } from "../loop-delays.ts";
import { quantile } from "../measure.ts";
import type { Latencies } from "./latencies.ts";

/** Points of a run, at most. */
const maxPoints = 200;

/** One look at a worker. */
export interface Sample {
  /** The worker's own resident memory: it follows the most calls that ever ran at once. */
  readonly memoryBytes: number;
  /** What it had in use when garbage was last collected. */
  readonly liveBytes: number;
  /** Of its idle sandboxes and their templates. */
  readonly idleBytes: number;
  readonly idleSandboxes: number;
  readonly descriptors: number;
  /** Timers, sockets, processes and the like that keep the event loop alive. */
  readonly resources: number;
  /** How late the event loop was since the look before. */
  readonly loopP99Ms: number;
  readonly loopMaxMs: number;
}

/** Some seconds of a run: medians of their samples, the greatest of the loop's delays. */
export interface Point extends Sample {
  /** From the start to the end of these seconds. */
  readonly atSeconds: number;
  /** Of calls that succeeded in them; zero if none did. */
  readonly latencyP50Ms: number;
  readonly latencyP99Ms: number;
}

/** What the benchmark asks a worker. */
export interface WorkerAnswers extends Pick<Sample, "resources" | "liveBytes"> {
  readonly delays: Delays;
}

/** A sample of the worker's page of metrics, and of its answers. */
export function sampleOf(
  metrics: MetricValues,
  { resources, liveBytes, delays }: WorkerAnswers,
): Sample {
  const sum = (name: string): number =>
    Object.entries(metrics)
      .filter(([key]) => key.startsWith(`${name}{`))
      .reduce((total, [, value]) => total + value, 0);
  return {
    memoryBytes: metrics["process_resident_memory_bytes"] ?? Number.NaN,
    liveBytes,
    idleBytes: sum("str_idle_memory_bytes"),
    idleSandboxes: sum("str_idle_sandboxes"),
    descriptors: metrics["process_open_fds"] ?? Number.NaN,
    resources,
    loopP99Ms: delays.p99Ms,
    loopMaxMs: delays.maxMs,
  };
}

/** The points of a run of so many seconds. */
export class Points {
  readonly #samplesPerPoint: number;
  readonly #points: Point[] = [];
  #samples: Sample[] = [];

  constructor(seconds: number) {
    this.#samplesPerPoint = Math.max(1, Math.ceil(seconds / maxPoints));
  }

  get all(): readonly Point[] {
    return this.#points;
  }

  /** @param takeWindow asked when a point is complete */
  add(sample: Sample, atSeconds: number, takeWindow: () => Latencies): void {
    this.#samples.push(sample);
    if (this.#samples.length < this.#samplesPerPoint) return;
    const samples = this.#samples;
    this.#samples = [];
    const at = (field: keyof Sample, part: number): number =>
      quantile(
        samples.map((each) => each[field]).toSorted((a, b) => a - b),
        part,
      );
    const { p50Ms, p99Ms } = takeWindow();
    this.#points.push({
      atSeconds: Number(atSeconds.toFixed(1)),
      memoryBytes: at("memoryBytes", 0.5),
      liveBytes: at("liveBytes", 0.5),
      idleBytes: at("idleBytes", 0.5),
      idleSandboxes: at("idleSandboxes", 0.5),
      descriptors: at("descriptors", 0.5),
      resources: at("resources", 0.5),
      loopP99Ms: at("loopP99Ms", 1),
      loopMaxMs: at("loopMaxMs", 1),
      latencyP50Ms: p50Ms,
      latencyP99Ms: p99Ms,
    });
  }
}
