/**
 * The ways of guaranteed messages from publishers to the broker, which outlive the connections that
 * they use.
 */
import type { Response } from "./wire/params.ts";

/**
 * Flows that are remembered; of more, those that were opened first go, and their publishers start
 * anew.
 */
export const maxPublisherFlows = 10_000;

/** Refusals of one flow that are remembered: as many as its client can wait for at once. */
const maxRefusals = 255;

/**
 * What the next message of a flow is: new, one that the broker has already, or one before which
 * another is missing.
 */
export type Standing = "new" | "known" | "early";

/** Numbers the messages of one publisher, so that what comes twice is kept once. */
export class PublisherFlow {
  readonly id: number;
  readonly name: string;
  readonly clientName: string;
  /** Id of the last message that the broker has taken or refused. */
  #lastId = 0;
  readonly #refusals = new Map<number, Response>();

  constructor(id: number, name: string, clientName: string) {
    this.id = id;
    this.name = name;
    this.clientName = clientName;
  }

  standing(id: number, previousId: number): Standing {
    if (id <= this.#lastId) return "known";
    return previousId > this.#lastId ? "early" : "new";
  }

  /** Remembers what became of a new message. */
  conclude(id: number, refusal: Response | undefined): void {
    this.#lastId = id;
    if (refusal === undefined) return;
    this.#refusals.set(id, refusal);
    const [oldest] = this.#refusals.keys();
    if (this.#refusals.size > maxRefusals && oldest !== undefined) this.#refusals.delete(oldest);
  }

  /**
   * The last message that a client that knows of everything up to `known` may take for confirmed:
   * none is refused before it.
   */
  confirmedAfter(known: number): number {
    const refused = [...this.#refusals.keys()].find((id) => id > known);
    return refused === undefined ? this.#lastId : refused - 1;
  }

  /** Why a message was refused; whoever asks again hears the same. */
  refusal(id: number): Response | undefined {
    return this.#refusals.get(id);
  }
}

/** The publisher flows of a broker, by name. */
export class PublisherFlows {
  readonly #flows = new Map<string, PublisherFlow>();

  /** A flow that nobody had before. */
  open(id: number, clientName: string): PublisherFlow {
    const flow = new PublisherFlow(id, `flow-${id}`, clientName);
    this.#flows.set(flow.name, flow);
    const [oldest] = this.#flows.keys();
    if (this.#flows.size > maxPublisherFlows && oldest !== undefined) this.#flows.delete(oldest);
    return flow;
  }

  /** The flow of this name, if it is this client's. */
  reopen(name: string, clientName: string): PublisherFlow | undefined {
    const flow = this.#flows.get(name);
    return flow?.clientName === clientName ? flow : undefined;
  }

  close(flow: PublisherFlow): void {
    this.#flows.delete(flow.name);
  }
}
