/**
 * The tools whose calls are to come through one queue.
 */
import type { Flow } from "./flow.ts";
import type { Queues } from "./queues.ts";

/** Those of one queue, and for which of them it is known that their calls come into it. */
export class ServedTools {
  readonly #queues: Pick<Queues, "attract" | "repel">;
  readonly #wanted = new Set<string>();
  readonly #attracted = new Set<string>();

  constructor(queues: Pick<Queues, "attract" | "repel">) {
    this.#queues = queues;
  }

  get names(): readonly string[] {
    return [...this.#wanted];
  }

  get isEmpty(): boolean {
    return this.#wanted.size === 0;
  }

  /** Whether the calls of all of them come into the queue. */
  get areAttracted(): boolean {
    return this.#wanted.isSubsetOf(this.#attracted);
  }

  has(toolName: string): boolean {
    return this.#wanted.has(toolName);
  }

  add(toolName: string): void {
    this.#wanted.add(toolName);
  }

  delete(toolName: string): void {
    this.#wanted.delete(toolName);
    this.#attracted.delete(toolName);
  }

  clear(): void {
    this.#wanted.clear();
    this.#attracted.clear();
  }

  /** Says that it may be another queue from now on, without the former one's subscriptions. */
  queueGone(): void {
    this.#attracted.clear();
  }

  /** Has the calls of a tool come into the queue, if there is a flow from it. Throws BrokerError, or the signal's reason. */
  async attract(flow: Flow | undefined, toolName: string, signal: AbortSignal): Promise<void> {
    if (flow === undefined || this.#attracted.has(toolName)) return;
    await this.#queues.attract(flow, toolName, signal);
    if (this.#wanted.has(toolName) && !flow.isClosing) this.#attracted.add(toolName);
  }

  /** Has the calls of all come into the queue that do not yet. Throws BrokerError when one is refused, or the signal's reason. */
  async attractAll(flow: Flow | undefined, signal: AbortSignal): Promise<void> {
    const missing = [...this.#wanted.difference(this.#attracted)];
    const attempts = missing.map((tool) => this.attract(flow, tool, signal));
    await Promise.allSettled(attempts);
    await Promise.all(attempts);
  }

  /** Has the calls of a tool come no more, though others may come. Throws BrokerError, or the signal's reason. */
  async repel(flow: Flow, toolName: string, signal: AbortSignal): Promise<void> {
    this.delete(toolName);
    await this.#queues.repel(flow, toolName, signal);
  }
}
