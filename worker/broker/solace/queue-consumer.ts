/**
 * Takes the calls of one queue, holds them until they are settled, and settles them.
 */
import type solace from "solclientjs";
import { logEvent } from "../../telemetry/log-event.ts";
import { BrokerError, type Delivery } from "../broker.ts";
import { type Consumer, type ConsumerOptions, reopen } from "../group-session.ts";
import type { SolaceConnection } from "./connection.ts";
import { isReplay } from "./failures.ts";
import type { Flow } from "./flow.ts";
import { deliveryCountOf, payloadOf, propertiesOf, topicOf } from "./messages.ts";
import type { Topology } from "./topology.ts";

export interface QueueConsumerOptions extends ConsumerOptions {
  readonly topology: Pick<Topology, "addressOf" | "bind">;
}

/**
 * Consumes a queue through a flow, and through another one while that one can take no more. Binds
 * again when the broker ends the last flow. Ends with its connection.
 */
export class QueueConsumer implements Consumer {
  readonly #connection: SolaceConnection;
  readonly #options: QueueConsumerOptions;
  readonly #flows = new Set<Flow>();
  readonly #cancelling = new AbortController();
  readonly #over: AbortSignal;
  #permits: number;
  #unsettled = 0;
  /** The bind of another flow, with its retries. Never rejects. */
  #extending: Promise<void> | undefined;
  #isCountLogged = false;
  #replayedAtMs: number | undefined;

  constructor(connection: SolaceConnection, options: QueueConsumerOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#over = AbortSignal.any([this.#cancelling.signal, connection.ended]);
    const { queue, limit, unsettled } = options;
    this.#permits = unsettled.permitsOf(queue, limit, () => {
      this.#permits++;
      this.#regulate();
    });
  }

  get isOpen(): boolean {
    return this.#flows.size > 0;
  }

  /** A flow of the queue, for what is the same through each. */
  get flow(): Flow | undefined {
    return this.#flows.values().next().value;
  }

  /** Binds to the queue and routes calls into it; leaves nothing open when it throws. */
  async open(callerSignal: AbortSignal): Promise<void> {
    const { topology, queue, route } = this.#options;
    const signal = AbortSignal.any([callerSignal, this.#over]);
    const onMessage = (flow: Flow, message: solace.Message): void => this.#receive(flow, message);
    const flow = await topology.bind(this.#connection, { queue, onMessage }, signal);
    const isFirst = !this.isOpen;
    this.#flows.add(flow);
    try {
      signal.throwIfAborted();
      if (isFirst) await route(signal);
      signal.throwIfAborted();
      if (flow.isClosing) throw await flow.lost;
    } catch (error) {
      await this.#drop(flow);
      throw error;
    }
    void flow.lost.then((cause) => this.#lose(flow, cause));
    this.#regulate();
  }

  reopen(cause: unknown): Promise<void> {
    this.#extending ??= this.#retry(cause).finally(() => (this.#extending = undefined));
    return this.#extending;
  }

  /** The settlement of the last call that arrived closes its flow. */
  async cancel(): Promise<void> {
    this.#cancelling.abort(new BrokerError("The consumer was cancelled", { transient: true }));
    for (const flow of this.#flows) flow.setOpen(false);
    await this.#extending;
    await Promise.all(Array.from(this.#flows, (flow) => this.#tidy(flow)));
  }

  /** Closes the flows; the broker redelivers what is unsettled. Never rejects. */
  async close(): Promise<void> {
    await this.cancel();
    await Promise.all(Array.from(this.#flows, (flow) => this.#drop(flow)));
  }

  /** Starts the flows while there are permits. A start may deliver synchronously. */
  #regulate(): void {
    for (const flow of this.#flows) flow.setOpen(this.#mayTake);
    const canTake = this.#flows.values().some((flow) => flow.canTake);
    if (this.#mayTake && this.isOpen && !canTake) void this.#extend();
  }

  get #mayTake(): boolean {
    return !this.#over.aborted && this.#unsettled < this.#permits;
  }

  #receive(flow: Flow, message: solace.Message): void {
    const payload = payloadOf(message);
    if (payload === undefined) {
      const facts = { queue: flow.queue, topic: topicOf(message) };
      logEvent(this.#options.log, "message.unsupported_type", facts);
      flow.settle(message, "rejected");
      void this.#tidy(flow);
      return;
    }
    this.#unsettled++;
    this.#options.buffer.add(this.#toDelivery(flow, message, payload));
    this.#regulate();
  }

  #toDelivery(flow: Flow, message: solace.Message, payload: Uint8Array): Delivery {
    let isSettled = false;
    let isExempt = false;
    return {
      topic: topicOf(message),
      queue: this.#options.queue,
      payload,
      redelivered: message.isRedelivered() || this.#mayBeReplayed(message),
      deliveryCount: this.#deliveryCountOf(message, flow),
      maxDeliveries: flow.facts.maxDeliveries ?? this.#options.maxDeliveries,
      properties: propertiesOf(message),
      get isLost() {
        return flow.isClosing;
      },
      exempt: () => {
        if (isSettled || isExempt) return;
        isExempt = true;
        this.#unsettled--;
        this.#regulate();
      },
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        if (!isExempt) this.#unsettled--;
        flow.settle(message, outcome);
        this.#regulate();
        await this.#tidy(flow);
      },
    };
  }

  /** Replayed messages come as new ones: a worker may have run what was sent before. */
  #mayBeReplayed(message: solace.Message): boolean {
    const replayedAtMs = this.#replayedAtMs;
    return replayedAtMs !== undefined && Number(propertiesOf(message)["timestamp"]) < replayedAtMs;
  }

  #deliveryCountOf(message: solace.Message, { queue }: Flow): number {
    const count = deliveryCountOf(message);
    if (count !== undefined) return count;
    if (!this.#isCountLogged)
      logEvent(this.#options.log, "queue.delivery_count_missing", { queue });
    this.#isCountLogged = true;
    return message.isRedelivered() ? 2 : 1;
  }

  /** Binds one more flow, as soon as the broker permits it. Never rejects. */
  #extend(): Promise<void> {
    this.#extending ??= this.open(this.#over)
      .catch((error: unknown) => this.#retry(error))
      .finally(() => (this.#extending = undefined));
    return this.#extending;
  }

  async #retry(cause: unknown): Promise<void> {
    const { topology, queue, clock, log } = this.#options;
    const [open, signal] = [() => this.open(this.#over), this.#over];
    await reopen({ address: topology.addressOf(queue), open, signal, clock, log }, cause);
  }

  /** Closes a flow that brings no more calls. Never rejects. */
  async #tidy(flow: Flow): Promise<void> {
    if (!this.#flows.has(flow)) return;
    if (!this.#over.aborted) void this.#renew(flow);
    else if (flow.unsettled === 0) await this.#drop(flow);
  }

  /** Replaces a spent flow. The broker redelivers what it just sent through it. Never rejects. */
  async #renew(flow: Flow): Promise<void> {
    if (!flow.isSpent) return;
    const hasOther = this.#flows.values().some((other) => other !== flow && other.canTake);
    if (!hasOther) await this.#extend();
    // Meanwhile it may have received calls.
    if (flow.isSpent && this.#flows.size > 1) await this.#drop(flow);
    this.#regulate();
  }

  /** Never rejects. */
  async #drop(flow: Flow): Promise<void> {
    this.#flows.delete(flow);
    await flow.close();
  }

  #lose(flow: Flow, cause: BrokerError): void {
    if (!this.#flows.delete(flow) || this.#over.aborted) return;
    if (isReplay(cause)) {
      logEvent(this.#options.log, "queue.replayed", { queue: flow.queue });
      this.#replayedAtMs = this.#options.clock.nowMs();
    }
    if (this.isOpen) this.#regulate();
    else if (isReplay(cause)) void this.#extend();
    else void this.reopen(cause);
  }
}
