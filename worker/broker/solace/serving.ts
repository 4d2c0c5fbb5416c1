/**
 * Which tools a session serves, and from which queues their calls come.
 */
import type { Clock } from "../../support/clock.ts";
import type { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { QueueWatch } from "../queue-watch.ts";
import { serveAll } from "../serve-all.ts";
import { Strays } from "../strays.ts";
import type { SolaceConnection } from "./connection.ts";
import { isReplay } from "./failures.ts";
import type { Flow } from "./flow.ts";
import type { Intake } from "./intake.ts";
import { topicOf } from "./messages.ts";
import type { Queues } from "./queues.ts";
import { Source } from "./source.ts";

/** What a session serves with. */
export interface ServingParts {
  readonly connection: SolaceConnection;
  readonly queues: Queues;
  readonly intake: Intake;
  readonly isRepeatable: (toolName: string) => boolean;
  readonly log: BrokerLog;
  readonly clock: Clock;
}

/** The serving half of a session. Lives as long as its connection. */
export class Serving {
  readonly #parts: ServingParts;
  /** By queue. Those that were left stay, to be taken up again. */
  readonly #sources = new Map<string, Source>();
  readonly #watch: QueueWatch;
  readonly #strays: Strays;
  /** Flows through which calls came before it was known which tools are served; as many as there is room for, at most. */
  readonly #early = new Map<string, Flow>();
  #isBegun = false;
  #isOver = false;

  constructor(parts: ServingParts) {
    this.#parts = parts;
    const { connection, log, clock } = parts;
    const { ended } = connection;
    this.#watch = new QueueWatch({ clock, ended, giveUp: (cause) => connection.lose(cause) });
    const isServed = (tool: string): boolean => this.#sourceOf(tool)?.tools.has(tool) === true;
    this.#strays = new Strays({ isServed, log, ended });
  }

  /** Whether calls are wanted, and can come from no queue. */
  get isWithoutQueue(): boolean {
    const wanted = [...this.#sources.values()].filter(({ tools }) => !tools.isEmpty);
    return wanted.length > 0 && !wanted.some(({ isBound }) => isBound);
  }

  /**
   * Serves the tools that a session starts with, those whose queues cannot be had as soon as they can. Throws BrokerError
   * when that is so with all of them, or the signal's reason when it aborts.
   */
  async begin(tools: readonly string[], signal: AbortSignal): Promise<void> {
    const { connection, clock } = this.#parts;
    const serve = (tool: string, over: AbortSignal): Promise<void> => this.serve(tool, over);
    const serveLater = (tool: string, failure: BrokerError): void =>
      this.#sourceOf(tool)?.serveLater(tool, failure);
    await serveAll(tools, { serve, serveLater, clock }, signal);
    connection.ended.throwIfAborted();
    this.#isBegun = true;
    for (const [tool, flow] of this.#early) this.#notice(tool, flow);
    this.#early.clear();
  }

  /**
   * Takes the calls of a tool, unless no more are to be taken at all. Idempotent. Throws BrokerError, or the signal's reason
   * when it aborts.
   */
  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    if (this.#isOver) return;
    const { queues } = this.#parts;
    const source = this.#sourceOf(toolName) ?? this.#add(queues.queueOf(toolName));
    await source.serve(toolName, signal);
  }

  /** Takes the calls of a tool no more; what came is handed out. Idempotent. Throws BrokerError, or the signal's reason. */
  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    const source = this.#sourceOf(toolName);
    if (!this.#parts.queues.hasOneQueue) return source?.leave();
    this.#strays.expect(toolName);
    await source?.repel(toolName, signal);
  }

  /** Takes no more from any queue; what came is handed out. Never rejects. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(Array.from(this.#sources.values(), (source) => source.leave()));
  }

  /** Lets all queues go; the broker takes back what is not settled. Never rejects. */
  async close(): Promise<void> {
    this.#isOver = true;
    await Promise.all(Array.from(this.#sources.values(), (source) => source.close()));
  }

  #sourceOf(toolName: string): Source | undefined {
    return this.#sources.get(this.#parts.queues.queueOf(toolName));
  }

  #add(queue: string): Source {
    const { intake, queues, isRepeatable } = this.#parts;
    const source: Source = new Source(queue, {
      ...this.#parts,
      turns: intake.turns,
      mayPark: (flow, tools) => tools.every(isRepeatable) && intake.maySpareDelivery(flow),
      mayGoBack: (flow, message) => intake.mayGoBack(flow, message),
      onMessage: (flow, message) => {
        const tool = queues.hasOneQueue ? queues.toolOf(topicOf(message)) : undefined;
        if (tool !== undefined) this.#notice(tool, flow);
        intake.receive(source, flow, message);
      },
      onLost: (flow, cause) => {
        intake.forget(flow);
        if (isReplay(cause)) intake.expectReplay(queue);
      },
      onChange: () => this.#watch.tell(this.isWithoutQueue),
    });
    this.#sources.set(queue, source);
    return source;
  }

  /** A call of a tool came out of the worker's own queue: if the tool is not served, no more of them are to come. */
  #notice(tool: string, flow: Flow): void {
    const { queues } = this.#parts;
    if (!this.#isBegun) this.#early.set(tool, flow);
    else this.#strays.notice(tool, flow.queue, (signal) => queues.repel(flow, tool, signal));
  }
}
