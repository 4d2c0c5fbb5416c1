/**
 * The worker's end of a template's channel: orders, one after the other, and what came of each.
 */
import type { Duplex } from "node:stream";
import type { Clock } from "../../../support/clock.ts";
import { isJsonObject, parseJson } from "../../../support/json/json.ts";
import { abortable, settlesWithin } from "../../../support/within.ts";
import { SandboxError } from "../../sandbox.ts";

/** Bytes of a line that a template says. */
const maxLineBytes = 4096;

/**
 * Milliseconds that it may take for an answer: a child is cloned in less than one on a machine that
 * is not busy.
 */
const answerTimeoutMs = 10_000;

const newline = 0x0a;

/** What a child is made with. */
export interface ChildOrder {
  /** By which it says whose its connections are. */
  readonly word: string;
  /** Name of its work directory in the template's directory. */
  readonly directory: string;
  /** CPUs that it is placed on; none for all of the template's. */
  readonly cpus: readonly number[];
}

/** What comes out of it was written where the tool's code runs. */
export class TemplateChannel {
  readonly #stream: Duplex;
  readonly #clock: Pick<Clock, "sleep">;
  #held: Buffer = Buffer.alloc(0);
  #answer: PromiseWithResolvers<string> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param stream nobody else reads; its owner destroys it */
  constructor(stream: Duplex, clock: Pick<Clock, "sleep">) {
    this.#stream = stream;
    this.#clock = clock;
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.once("close", () => this.#answer?.reject(new SandboxError("a template has ended")));
    stream.resume();
  }

  /**
   * Has a child made. Returns its number in the template's pid namespace, as the template says.
   * Rejects with SandboxError; with the signal's reason at once when it aborts: a child that is
   * made all the same finds nobody who expects it.
   */
  async fork(order: ChildOrder, signal: AbortSignal): Promise<number> {
    const forked = this.#turn.then(() => this.#fork(order, signal));
    this.#turn = forked.catch(() => undefined);
    return await abortable(forked, signal);
  }

  async #fork(order: ChildOrder, signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    if (this.#stream.destroyed) throw new SandboxError("a template has ended");
    const answer = Promise.withResolvers<string>();
    this.#answer = answer;
    this.#stream.write(`${JSON.stringify(order)}\n`);
    // Nobody can say later which order an answer is to, so a template that owes one is of no more
    // use.
    if (!(await settlesWithin(answer.promise, answerTimeoutMs, this.#clock)))
      this.#stream.destroy();
    const line = await answer.promise;
    const value = parsed(line);
    if (isJsonObject(value) && typeof value["forked"] === "number") return value["forked"];
    throw new SandboxError(`a template could not make a child: ${line}`);
  }

  #take(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk]).subarray(0, maxLineBytes);
    const end = this.#held.indexOf(newline);
    if (end === -1) return;
    this.#answer?.resolve(this.#held.subarray(0, end).toString("utf8"));
    this.#held = this.#held.subarray(end + 1);
  }
}

function parsed(line: string): unknown {
  try {
    return parseJson(Buffer.from(line));
  } catch {
    return undefined;
  }
}
