/**
 * The worker's end of a template's channel: orders, one after the other, and their answers.
 */
import type { Duplex } from "node:stream";
import { isJsonObject, parseJson } from "../../../support/json/json.ts";
import { abortable } from "../../../support/timeout.ts";
import { SandboxError } from "../../sandbox.ts";
import { readLine } from "../idle/read-line.ts";

/** Bound of an answer. */
const maxLineBytes = 4096;

/** An order for a child. */
export interface ChildOrder {
  /** Identifies the child's connections. */
  readonly word: string;
  /** Name of its work directory in the template's directory. */
  readonly directory: string;
  /** Its CPUs; none for all of the template's. */
  readonly cpus: readonly number[];
}

/** A channel. The tool's code may have written the answers. */
export class TemplateChannel {
  readonly #stream: Duplex;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param stream read by the channel only; its owner destroys it */
  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  /**
   * Orders a child. Returns its pid in the template's namespace, as the template reports it.
   * Rejects with SandboxError; with the signal's reason immediately: a late child finds no
   * listener.
   */
  async fork(order: ChildOrder, signal: AbortSignal): Promise<number> {
    // An aborted order keeps its turn until the answer, which is not for the next order.
    const forked = this.#turn.then(() => this.#fork(order, signal));
    this.#turn = forked.catch(() => undefined);
    return await abortable(forked, signal);
  }

  async #fork(order: ChildOrder, signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    this.#stream.write(`${JSON.stringify(order)}\n`);
    const line = await readLine(this.#stream, maxLineBytes);
    if (line === undefined) throw new SandboxError("a template has ended");
    const value = parsed(line);
    if (isJsonObject(value) && typeof value["forked"] === "number") return value["forked"];
    throw new SandboxError(`a template could not make a child: ${line.toString("utf8")}`);
  }
}

function parsed(line: Uint8Array): unknown {
  try {
    return parseJson(line);
  } catch {
    return undefined;
  }
}
