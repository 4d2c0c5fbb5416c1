/**
 * What happened in a chaos, in order: what agent, broker, workers and tools did with each request,
 * and what was done to them.
 */
import type { Settlement } from "../../../worker/broker/broker.ts";
import { abortable } from "../../../worker/support/timeout.ts";

/** What is seen on the way between a worker and the broker. */
export type WireEvent =
  /** The broker hands a request out, as it says for the `count`th time. */
  | {
      readonly kind: "delivered";
      readonly request: string;
      readonly count: number;
      readonly isRepeated: boolean;
    }
  | { readonly kind: "answered"; readonly request: string }
  /** The worker publishes what is no answer, and has it confirmed as well. */
  | { readonly kind: "announced" }
  | { readonly kind: "settled"; readonly request: string; readonly outcome: Settlement };

/**
 * The same, with whose way it is, and whether it went on: an answer or a settlement may be made to
 * be lost.
 */
export type LineEvent = WireEvent & { readonly worker: string; readonly isLost: boolean };

/** What can happen. A request is one attempt of a call. */
export type ChaosEvent =
  | LineEvent
  /** The agent sends it; the broker may have it from now on, even if it never says so. */
  | { readonly kind: "sent"; readonly request: string }
  /** What was sent last the broker had nobody for. */
  | { readonly kind: "unheard"; readonly request: string }
  /** A tool has begun; each run has a number of its own. */
  | {
      readonly kind: "began";
      readonly request: string;
      readonly worker: string;
      readonly run: number;
    }
  /** The agent has got an answer; one of success tells of which run. */
  | {
      readonly kind: "heard";
      readonly request: string;
      readonly ending: string;
      readonly run: number | undefined;
    }
  /** The agent cancels it; nothing says whether a worker hears that. */
  | { readonly kind: "cancelled"; readonly request: string }
  /** The agent is done with a call: it has an answer, or waits no longer. */
  | { readonly kind: "over"; readonly request: string }
  /** A worker is told to stop, or killed. */
  | { readonly kind: "stopped"; readonly worker: string; readonly how: string }
  /** One has ended, and whether as it was told. */
  | {
      readonly kind: "ended";
      readonly worker: string;
      readonly how: string;
      readonly isGood: boolean;
    }
  /** A tool is taken out of a worker's manifest. */
  | { readonly kind: "withdrawn"; readonly worker: string; readonly tool: string }
  /** Something was done to them, and what it was about. */
  | { readonly kind: "act"; readonly act: string; readonly detail: string };

/** An event, and when it was: seconds from the beginning. */
export type TimedEvent = ChaosEvent & { readonly atSeconds: number };

/** Takes note of everything, and tells those who wait for it. */
export class ChaosHistory {
  readonly events: TimedEvent[] = [];
  readonly #startMs = performance.now();
  readonly #listeners = new Set<(event: ChaosEvent) => void>();
  /** Those that are over. */
  #calls = 0;

  tell(event: ChaosEvent): void {
    this.events.push({ ...event, atSeconds: (performance.now() - this.#startMs) / 1000 });
    if (event.kind === "over") this.#calls++;
    for (const listener of [...this.#listeners]) listener(event);
  }

  /** Whether some worker has sent an answer to a request. */
  wasAnswered(request: string): boolean {
    return eventsOf("answered", this.events).some((event) => event.request === request);
  }

  /**
   * The first thing that `find` makes of an event from now on. Rejects with the signal's reason
   * when it aborts before.
   */
  async until<T>(find: (event: ChaosEvent) => T | undefined, signal: AbortSignal): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>();
    const listener = (event: ChaosEvent): void => {
      const found = find(event);
      if (found !== undefined) resolve(found);
    };
    this.#listeners.add(listener);
    try {
      return await abortable(promise, signal);
    } finally {
      this.#listeners.delete(listener);
    }
  }

  /**
   * Resolves when so many calls more are over. Rejects with the signal's reason when it aborts
   * before.
   */
  async untilOver(calls: number, signal: AbortSignal): Promise<void> {
    const until = this.#calls + calls;
    const isOver = ({ kind }: ChaosEvent): true | undefined => (kind === "over" ? true : undefined);
    while (this.#calls < until) await this.until(isOver, signal);
  }
}

/** Those of a kind. */
export function eventsOf<K extends ChaosEvent["kind"]>(
  kind: K,
  events: readonly ChaosEvent[],
): readonly Extract<ChaosEvent, { readonly kind: K }>[] {
  return events.filter(
    (event): event is Extract<ChaosEvent, { readonly kind: K }> => event.kind === kind,
  );
}
