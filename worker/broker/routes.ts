/**
 * Keeps the calls of the served tools routed into the queues of the group.
 *
 * A tool is routed into its queue first and then unrouted from the others, so that every call is
 * routable. A tool that the manifest lost keeps its route, since other workers of the group may
 * serve it; one that it leaves to other workers is routed into their queue, if the broker can.
 */
import type { Clock } from "../support/clock.ts";
import { createRepeatFilter } from "../support/repeat-filter.ts";
import { Semaphore } from "../support/semaphore.ts";
import { defaultQueue } from "../protocol/queue-names.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { BrokerError, ToolPlacement } from "./broker.ts";
import { type BrokerLog, reasonOf } from "./log.ts";

/** Milliseconds between two checks. */
export const routeCheckMs = 15_000;

const maxRoutesAtOnce = 32;

/** How a broker routes. */
export interface RoutesParts {
  readonly queues: readonly string[];
  readonly placement: ToolPlacement;
  /** Whether the broker routes into queues that this worker does not consume. */
  readonly routesElsewhere: boolean;
  route(tool: string, queue: string, signal: AbortSignal): Promise<void>;
  /** Routes no more calls of a tool into a queue. Idempotent. */
  unroute(tool: string, queue: string, signal: AbortSignal): Promise<void>;
  /** Restores what routes need, before every check. Without it only failed routes are retried. */
  restore?(signal: AbortSignal): Promise<void>;
  readonly ended: AbortSignal;
  readonly clock: Clock;
  readonly log: BrokerLog;
}

export class Routes {
  readonly #parts: RoutesParts;
  /** Wanted tools, each with the queue that it is routed into. */
  readonly #tools = new Map<string, string | undefined>();
  /** `queue tool` of removed routes of other workers. */
  readonly #withdrawn = new Set<string>();
  readonly #slots = new Semaphore({ capacity: maxRoutesAtOnce, maxWaiting: Infinity });
  readonly #isNew: (text: string) => boolean;
  #isBroken = false;
  #watching: Promise<void> | undefined;

  constructor(parts: RoutesParts) {
    this.#parts = parts;
    this.#isNew = createRepeatFilter(parts.clock);
  }

  /** Whether calls of no tool are routed. */
  get areMissing(): boolean {
    const isRouted = (queue: string | undefined): boolean => queue !== undefined;
    return this.#isBroken || (this.#tools.size > 0 && !this.#tools.values().some(isRouted));
  }

  /** Tools that `routeAll` is to route. */
  want(tools: readonly string[]): void {
    for (const tool of tools) if (!this.#tools.has(tool)) this.#tools.set(tool, undefined);
  }

  /** Routes a tool into its queue and no other. */
  async add(tool: string, signal: AbortSignal): Promise<void> {
    this.#watching ??= this.#watch();
    await this.#route(tool, signal);
  }

  /** Restores no route of a tool any more. */
  async delete(tool: string, signal: AbortSignal): Promise<void> {
    const { queues, placement } = this.#parts;
    this.#tools.delete(tool);
    if (!placement.foreignTools().includes(tool)) return;
    await Promise.all(queues.map((queue) => this.#withdraw(tool, queue, signal)));
  }

  /** Routes the wanted tools of one queue. Throws when the broker refuses all of them. */
  async routeAll(queue: string, signal: AbortSignal): Promise<void> {
    const { placement } = this.#parts;
    await this.#routeEach((tool) => placement.queueOf(tool) === queue, signal);
    await this.#withdrawFrom(queue, placement.foreignTools(), signal);
    this.#watching ??= this.#watch();
  }

  /** Unroutes the tools of other queues, for brokers that do so from consumed queues only. */
  async unrouteOthers(queue: string, signal: AbortSignal): Promise<void> {
    const { unroute } = this.#parts;
    for (const [tool, routed] of this.#tools)
      if (routed !== undefined && routed !== queue) await unroute(tool, queue, signal);
  }

  async #withdrawFrom(queue: string, tools: readonly string[], signal: AbortSignal): Promise<void> {
    const withdraw = async (tool: string): Promise<void> => {
      using _slot = await this.#slots.acquire(signal);
      await this.#withdraw(tool, queue, signal);
    };
    await Promise.all(tools.map(withdraw));
  }

  /** Routes a tool of other workers into their queue. A failure leaves the route for a retry. */
  async #withdraw(tool: string, queue: string, signal: AbortSignal): Promise<void> {
    const { placement, routesElsewhere, route, unroute } = this.#parts;
    const theirs = placement.queueOf(tool);
    try {
      if (theirs !== undefined && routesElsewhere) await route(tool, theirs, signal);
      await unroute(tool, queue, signal);
      this.#withdrawn.add(`${queue} ${tool}`);
    } catch (error) {
      signal.throwIfAborted();
      this.#logRefused(tool, error as BrokerError);
    }
  }

  #logRefused(tool: string, error: BrokerError): void {
    if (this.#isNew(error.message))
      logEvent(this.#parts.log, "tool.route_refused", { tool, err: error });
  }

  async #routeEach(isMeant: (tool: string) => boolean, signal: AbortSignal): Promise<void> {
    const { ended } = this.#parts;
    const tools = [...this.#tools.keys()].filter(isMeant);
    const results = await Promise.allSettled(tools.map((tool) => this.#route(tool, signal)));
    signal.throwIfAborted();
    ended.throwIfAborted();
    const failures = tools.flatMap((tool, index) => {
      const result = results[index];
      return result?.status === "rejected" ? [{ tool, error: result.reason as BrokerError }] : [];
    });
    for (const { tool, error } of failures) this.#logRefused(tool, error);
    const [first] = failures;
    if (first !== undefined && failures.length === tools.length) throw first.error;
  }

  async #route(tool: string, signal: AbortSignal): Promise<void> {
    const { queues, route, unroute, placement } = this.#parts;
    this.want([tool]);
    using _slot = await this.#slots.acquire(signal);
    const queue = placement.queueOf(tool) ?? defaultQueue;
    try {
      await route(tool, queue, signal);
      // Left meanwhile: this route may have come after the removal.
      if (!this.#tools.has(tool)) return await this.delete(tool, signal);
      // Once: workers with another manifest would undo each other's work.
      const others = this.#tools.get(tool) === queue ? [] : queues.filter((name) => name !== queue);
      for (const other of others) await unroute(tool, other, signal);
    } catch (error) {
      if (this.#tools.has(tool)) this.#tools.set(tool, undefined);
      throw error;
    }
    if (this.#tools.has(tool)) this.#tools.set(tool, queue);
  }

  /** Never rejects. */
  async #watch(): Promise<void> {
    const { clock, ended } = this.#parts;
    while (!ended.aborted) {
      await clock.sleep(routeCheckMs, ended).catch(() => undefined);
      if (!ended.aborted) await this.#check();
    }
  }

  async #check(): Promise<void> {
    const { restore, ended, log, placement, queues } = this.#parts;
    try {
      await restore?.(ended);
      const isMeant = (tool: string): boolean =>
        restore !== undefined || this.#tools.get(tool) === undefined;
      await this.#routeEach(isMeant, ended);
      for (const queue of queues) {
        const isLeft = (tool: string): boolean => !this.#withdrawn.has(`${queue} ${tool}`);
        await this.#withdrawFrom(queue, placement.foreignTools().filter(isLeft), ended);
      }
      if (this.#isBroken) logEvent(log, "routes.restored");
      this.#isBroken = false;
    } catch (error) {
      if (ended.aborted) return;
      this.#isBroken = true;
      const reason = reasonOf(error);
      // The filter knows the reason from the tools' own lines.
      if (this.#isNew(`all: ${reason}`)) logEvent(log, "routes.restore_failed", { reason });
    }
  }
}
