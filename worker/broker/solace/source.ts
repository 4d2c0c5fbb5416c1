/**
 * The calls of one queue: the flows that they come through, bound again whenever the broker ends them.
 */
import { abortable } from "../../support/within.ts";
import type { Clock } from "../../support/clock.ts";
import { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { SolaceConnection } from "./connection.ts";
import type { Flow } from "./flow.ts";
import { type PartingParts, part } from "./parting.ts";
import type { Queues } from "./queues.ts";
import { Recovery } from "./recovery.ts";
import { ServedTools } from "./served-tools.ts";
import type { TurnTaker, Turns } from "./turns.ts";

/** What a source works with, and who is told. */
export interface SourceParts extends PartingParts {
  readonly connection: SolaceConnection;
  readonly queues: Pick<Queues, "bind" | "attract" | "repel">;
  readonly turns: Pick<Turns, "join" | "bound">;
  /** Whether a queue may be let go while it brings calls of these tools. */
  readonly mayPark: (flow: Flow, tools: readonly string[]) => boolean;
  /** The broker has taken back what a flow brought, and why. */
  readonly onLost: (flow: Flow, cause: BrokerError) => void;
  /** Calls may come now, or can come no more. */
  readonly onChange: () => void;
  readonly log: BrokerLog;
  readonly clock: Clock;
}

/**
 * One queue, as long as the session serves tools through it. There is one flow, and a further one while no other can take
 * messages; none while it is parked. A flow that is spent makes room for a new one.
 *
 * A queue that was had and is lost is asked for again after a delay, until it is had, left, or the connection ends: one
 * queue that is down is no reason to take no more calls from the others.
 */
export class Source implements TurnTaker {
  readonly queue: string;
  /** Those whose calls are wanted of it. */
  readonly tools: ServedTools;
  readonly #parts: SourceParts;
  readonly #recovery: Recovery;
  readonly #flows = new Set<Flow>();
  /** Its place among those that take calls, while calls are wanted. */
  #seat: Disposable | undefined;
  /** The bind that is under way, and the parting; neither begins before the other has ended. */
  #binding: Promise<void> | undefined;
  #parting: Promise<void> = Promise.resolve();
  /** Ends what is done to have calls come. */
  #stopping = new AbortController();
  #isParked = false;
  #isLeaving = false;

  constructor(queue: string, parts: SourceParts) {
    this.queue = queue;
    this.#parts = parts;
    this.tools = new ServedTools(parts.queues);
    this.#recovery = new Recovery({
      isLacking: () => this.#isLacking,
      complete: () => this.#complete(),
      facts: () => ({ queue, tools: this.tools.names }),
      ...parts,
    });
  }

  /** Whether calls may come, now or when there is room. */
  get isBound(): boolean {
    return this.#flows.size > 0 || this.#isParked;
  }

  get isParked(): boolean {
    return this.#isParked;
  }

  get flows(): Iterable<Flow> {
    return this.#flows;
  }

  /** Takes the calls of a tool. Idempotent. Throws BrokerError, or the signal's reason when it aborts. */
  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    const wasServed = this.tools.has(toolName);
    this.#want(toolName);
    try {
      await this.#bind(signal);
      await this.tools.attract(this.#anyFlow, toolName, signal);
    } catch (error) {
      const isLeft = !this.tools.has(toolName);
      if (!wasServed) await this.#forget(toolName);
      signal.throwIfAborted();
      if (!isLeft) throw error;
    }
    if (!this.#isLacking) this.#recovery.completed();
  }

  /** Takes the calls of a tool as soon as it can, since it could not because of `failure`. */
  serveLater(toolName: string, failure: BrokerError): void {
    this.#want(toolName);
    this.#recover(failure);
  }

  /** Takes the calls of a tool no more, though those of others may come through the same queue. Throws BrokerError. */
  async repel(toolName: string, signal: AbortSignal): Promise<void> {
    const flow = this.#anyFlow;
    if (flow === undefined) {
      const message = `The queue ${this.queue} is not bound to for now`;
      throw new BrokerError(message, { transient: true });
    }
    await this.tools.repel(flow, toolName, signal);
  }

  /** Takes no more; flows whose messages are not all settled stay until they are. Never rejects. */
  async leave(): Promise<void> {
    await this.#stop();
    if (!this.#isLeaving) return;
    for (const flow of this.#flows) flow.handOnAside();
    await Promise.all(Array.from(this.#flows, (flow) => this.tidy(flow)));
  }

  /** Lets the queue go; the broker takes back what is not settled. Never rejects. */
  async close(): Promise<void> {
    await this.#stop();
    await Promise.all(Array.from(this.#flows, (flow) => this.#drop(flow)));
  }

  /** Lets a flow go that has served its turn: to be called when one of its messages was settled. Never rejects. */
  async tidy(flow: Flow): Promise<void> {
    if (!this.#flows.has(flow)) return;
    if (this.#isLeaving) {
      if (flow.held === 0) await this.#drop(flow);
    } else if (flow.isSpent) {
      await Promise.all([this.#drop(flow), this.extend()]);
    }
  }

  /** Sees to it that some flow can take messages. Never rejects. */
  async extend(): Promise<void> {
    if (this.#canTake || this.#recovery.isUnderWay) return;
    await this.#approach();
  }

  park(): void {
    const { mayPark } = this.#parts;
    const flows = [...this.#flows];
    const mayLeave = flows.every((flow) => flow.held === 0 && mayPark(flow, this.tools.names));
    if (flows.length === 0 || !mayLeave || this.#isLeaving || this.#binding !== undefined) return;
    this.#isParked = true;
    this.#parting = this.#part(flows);
  }

  async resume(): Promise<boolean> {
    await this.#parting;
    this.#isParked = false;
    return this.#approach();
  }

  /** Never rejects. */
  async #part(flows: readonly Flow[]): Promise<void> {
    const over = this.#over;
    for (const flow of flows) {
      if (await part(flow, this.#parts, over)) this.#flows.delete(flow);
      else this.#isParked = false;
    }
    if (this.#flows.size === 0) this.tools.queueGone();
  }

  /** Gets what is missing, and goes on asking for it if need be. Whether nothing is missing. Never rejects. */
  async #approach(): Promise<boolean> {
    try {
      await this.#complete();
      return this.#canTake;
    } catch (error) {
      this.#recover(error as BrokerError);
      return false;
    }
  }

  /** Gets what is missing. Throws BrokerError. */
  async #complete(): Promise<void> {
    const { ended } = this.#parts.connection;
    await this.#bind(ended);
    await this.tools.attractAll(this.#anyFlow, ended);
    this.#recovery.completed();
  }

  /** Has a flow that can take messages. Throws BrokerError, or the signal's reason when it aborts. */
  async #bind(signal: AbortSignal): Promise<void> {
    if (this.#canTake || this.#isParked || this.#isLeaving) return;
    this.#binding ??= this.#add(this.#over).finally(() => {
      this.#binding = undefined;
    });
    await abortable(this.#binding, signal);
  }

  async #add(over: AbortSignal): Promise<void> {
    const { connection, queues, turns, onMessage, onChange } = this.#parts;
    await this.#parting;
    if (this.#canTake || over.aborted) return;
    const flow = await queues.bind(connection, { queue: this.queue, onMessage }, over);
    if (over.aborted) return flow.close();
    this.#flows.add(flow);
    void flow.lost.then((cause) => this.#lose(flow, cause));
    void turns.bound(this);
    onChange();
  }

  /** Never rejects. */
  async #drop(flow: Flow): Promise<void> {
    this.#flows.delete(flow);
    await flow.close();
  }

  #want(toolName: string): void {
    const { turns, onChange } = this.#parts;
    this.tools.add(toolName);
    this.#isLeaving = false;
    if (this.#seat === undefined) {
      this.#seat = turns.join(this);
      if (this.#flows.size > 0) void turns.bound(this);
    }
    onChange();
  }

  async #forget(toolName: string): Promise<void> {
    this.tools.delete(toolName);
    if (this.tools.isEmpty) await this.leave();
  }

  #lose(flow: Flow, cause: BrokerError): void {
    if (!this.#flows.delete(flow)) return;
    this.tools.queueGone();
    this.#isParked = false;
    this.#parts.onLost(flow, cause);
    this.#parts.onChange();
    this.#recover(cause);
  }

  #recover(failure: BrokerError): void {
    if (!this.#isLeaving) void this.#recovery.begin(failure, this.#over);
  }

  /** Aborts when calls are wanted no more, or cannot come. */
  get #over(): AbortSignal {
    return AbortSignal.any([this.#stopping.signal, this.#parts.connection.ended]);
  }

  /** For what is the same through each of them. */
  get #anyFlow(): Flow | undefined {
    return this.#flows.values().next().value;
  }

  get #canTake(): boolean {
    return this.#flows.values().some((flow) => flow.canTake);
  }

  get #isLacking(): boolean {
    return !this.#isParked && (!this.#canTake || !this.tools.areAttracted);
  }

  /** Waits for the end of what was under way. Never rejects. */
  async #stop(): Promise<void> {
    this.#isLeaving = true;
    this.#isParked = false;
    this.tools.clear();
    this.#seat?.[Symbol.dispose]();
    this.#seat = undefined;
    for (const flow of this.#flows) flow.setOpen(false);
    this.#stopping.abort(new BrokerError("The queue was left", { transient: true }));
    this.#stopping = new AbortController();
    await Promise.allSettled([this.#binding, this.#parting]);
    this.#parts.onChange();
  }
}
