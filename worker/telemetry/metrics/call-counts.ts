/**
 * Counts calls and their steps.
 */
import type { CallEnding, CallFollower, CallStep, CallTrace, RunFacts } from "../call-follower.ts";
import { type Sample, type Samples, only } from "./catalog.ts";
import type { callMetrics } from "./catalog/calls.ts";
import type { sandboxMetrics } from "./catalog/sandboxes.ts";
import { Histogram } from "./histogram.ts";
import { ServedTools } from "./served-tools.ts";
import { Tally } from "./tally.ts";

/** Deliveries that another one answers: their short times say nothing of the tool. */
const withoutDuration: ReadonlySet<string> = new Set(["duplicate", "requeued"]);

/** The counts of one tool. */
class ToolCalls {
  readonly ended = new Tally<"profile" | "outcome">();
  readonly started = new Tally<"start">();
  readonly limitsReached = new Tally<"limit">();
  readonly seconds = new Histogram();
  cpuSeconds = 0;
}

/** A counter that appeared with its first event would hide it: an increase needs a value before. */
function settlementsAtZero(): Tally<"settlement"> {
  const tally = new Tally<"settlement">();
  for (const settlement of ["accepted", "failed", "rejected", "none"]) tally.add({ settlement }, 0);
  return tally;
}

/** Slots and queues have samples of their own. */
type CallMetricName =
  | Exclude<
      keyof typeof callMetrics,
      "str_slots" | "str_slots_used" | "str_slots_lent" | "str_calls_waiting"
    >
  | Extract<
      keyof typeof sandboxMetrics,
      `str_sandboxes_${string}` | `str_tool_${string}` | `str_limits_${string}`
    >;

/** The counts of a worker's calls. */
export class CallCounts {
  readonly #nowMs: () => number;
  readonly #epochMs: () => number;
  readonly #tools = new ServedTools(() => new ToolCalls());
  readonly #steps = new Map<CallStep, Histogram>();
  readonly #refused = new Tally<"outcome">();
  readonly #settled = settlementsAtZero();
  readonly #unenforced = new Tally<"limit">();
  #received = 0;
  #running = 0;

  /**
   * @param nowMs the monotonic clock
   * @param epochMs the time of day, of exemplars
   */
  constructor(nowMs: () => number, epochMs: () => number = Date.now) {
    this.#nowMs = nowMs;
    this.#epochMs = epochMs;
  }

  /** Tools that have counts from now on. */
  serve(tools: Iterable<string>): void {
    this.#tools.serve(tools);
  }

  /**
   * Follows a call that has just been received, in this trace if it has one. A nested one is no
   * delivery.
   */
  follow(trace?: Pick<CallTrace, "traceId" | "isSampled">, isNested = false): CallFollower {
    if (!isNested) this.#received++;
    if (!isNested) this.#running++;
    const beganMs = this.#nowMs();
    let [step, stepBeganMs] = ["receive" as CallStep, beganMs];
    let tool: ToolCalls | undefined;
    let profile = "";
    const leave = (): void => {
      const nowMs = this.#nowMs();
      this.#observe(step, nowMs - stepBeganMs);
      stepBeganMs = nowMs;
    };
    return {
      enter: (next) => {
        leave();
        step = next;
      },
      resolved: (name) => {
        tool = this.#tools.of(name);
      },
      under: (name) => {
        profile = name;
      },
      ran: ({ start, unenforced, cpuMs = 0 }: RunFacts) => {
        for (const limit of unenforced) this.#unenforced.add({ limit });
        tool?.started.add({ start });
        if (tool !== undefined) tool.cpuSeconds += cpuMs / 1000;
      },
      limitReached: (limit) => tool?.limitsReached.add({ limit }),
      end: ({ outcome, settlement }: CallEnding) => {
        leave();
        if (!isNested) this.#running--;
        if (!isNested) this.#settled.add({ settlement });
        if (tool === undefined) return this.#refused.add({ outcome });
        tool.ended.add({ profile, outcome });
        if (withoutDuration.has(outcome)) return;
        const shownBy =
          trace?.isSampled === true
            ? { traceId: trace.traceId, epochSeconds: this.#epochMs() / 1000 }
            : undefined;
        tool.seconds.observe((this.#nowMs() - beganMs) / 1000, shownBy);
      },
    };
  }

  readonly samples: Samples<CallMetricName> = {
    str_deliveries_received_total: () => only(this.#received),
    str_deliveries_settled_total: () => this.#settled.samples(),
    str_deliveries_running: () => only(this.#running),
    str_calls_total: () => this.#each(({ ended }) => ended.samples()),
    str_calls_refused_total: () => this.#refused.samples(),
    str_call_duration_seconds: () => this.#each(({ seconds }) => only(seconds)),
    str_call_step_duration_seconds: () =>
      Array.from(this.#steps, ([step, value]) => ({ labels: { step }, value })),
    str_sandboxes_started_total: () => this.#each(({ started }) => started.samples()),
    str_tool_cpu_seconds_total: () => this.#each(({ cpuSeconds }) => only(cpuSeconds)),
    str_limits_reached_total: () => this.#each(({ limitsReached }) => limitsReached.samples()),
    str_limits_unenforced_total: () => this.#unenforced.samples(),
  };

  #each<Value>(read: (counts: ToolCalls) => readonly Sample<Value>[]): readonly Sample<Value>[] {
    return this.#tools.samples(read);
  }

  #observe(step: CallStep, ms: number): void {
    const known = this.#steps.get(step) ?? new Histogram();
    this.#steps.set(step, known);
    known.observe(ms / 1000);
  }
}
