/**
 * The worker's end of a channel: serves the requests of one sandbox by a gateway.
 *
 * A sandbox can send without end and read nothing. So the host reads a request only after the one
 * before it has started, which waits for a permit, and for all answers to be sent but for
 * `maxUnsentBytes`. `cancel` is read as long as no request waits.
 *
 * A request keeps its permit until its answer is sent but for `maxUnsentBytes`. So at most the
 * answers of `maxConcurrentCalls` calls and `maxConcurrentLookups` others wait.
 */
import type { Duplex } from "node:stream";
import { Semaphore } from "../../support/semaphore.ts";
import { GatewayError, type ProgramGateway } from "../gateway.ts";
import { defaultGatewayLimits } from "../../protocol/tool-calls/limits.ts";
import { answerLine } from "./answer.ts";
import { Answers, type KeptAnswer } from "./answers.ts";
import {
  ChannelViolation,
  type ViolationReason,
  maxRequestBytes,
  maxUnsentBytes,
  readFrames,
  sentBelow,
} from "./frames.ts";
import { type ProgramRequest, readProgramMessage } from "./messages.ts";

/** Requests at a time that are no calls. */
export const maxConcurrentLookups = 8;
/** Cancels, of a channel, of ids that are not in flight or are cancelled already. */
export const maxVainCancels = 1_000;

/** How a channel ended: by its program, by `close`, by an error, or by a violation. */
export interface ChannelEnd {
  readonly reason: "ended" | "closed" | "lost" | ViolationReason;
  /** Publishable. */
  readonly message: string;
}

export interface HostOptions {
  /** `run_tool` and `run_chain` at a time. */
  readonly maxConcurrentCalls?: number;
  /** For the files of answers that wait. Without it they wait in memory. */
  readonly directory?: string;
}

/** Owns the channel, which is not read before `open`. */
export class ProxyHost implements AsyncDisposable {
  readonly #channel: Duplex;
  readonly #gateway: ProgramGateway;
  readonly #calls: Semaphore;
  readonly #lookups = new Semaphore({ capacity: maxConcurrentLookups, maxWaiting: 1 });
  readonly #answers: Answers;
  /** By the id of the request. */
  readonly #inFlight = new Map<string, AbortController>();
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #ended = Promise.withResolvers<ChannelEnd>();
  #isOpen = false;
  #vainCancels = 0;

  constructor(channel: Duplex, gateway: ProgramGateway, options: HostOptions = {}) {
    this.#channel = channel;
    this.#gateway = gateway;
    const capacity = options.maxConcurrentCalls ?? defaultGatewayLimits.maxConcurrentCalls;
    this.#answers = new Answers(channel, options.directory);
    // The reader waits alone.
    this.#calls = new Semaphore({ capacity, maxWaiting: 1 });
    // The reader meets the error, or the channel is closed already.
    channel.on("error", () => undefined);
  }

  /** How the channel ended, once it is closed and all its calls have ended. */
  get ended(): Promise<ChannelEnd> {
    return this.#ended.promise;
  }

  /** Starts to read, once. */
  open(): void {
    if (this.#isOpen || this.#closing.signal.aborted) return;
    this.#isOpen = true;
    void this.#serve();
  }

  /** Closes the channel, aborts all calls, and waits until they have ended. */
  async close(): Promise<ChannelEnd> {
    this.#close({ reason: "closed", message: "the call of the program is over" });
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #serve(): Promise<void> {
    try {
      for await (const frame of readFrames(this.#channel, maxRequestBytes)) {
        const message = readProgramMessage(frame);
        if (message.type === "cancel") this.#cancel(message.id);
        else await this.#start(message);
      }
      this.#close({ reason: "ended", message: "the program closed it" });
    } catch (error) {
      this.#close(endBy(error));
    }
  }

  #cancel(id: string): void {
    const controller = this.#inFlight.get(id);
    if (controller === undefined || controller.signal.aborted) return this.#vainCancel();
    const message = "The program cancelled the call";
    controller.abort(new GatewayError("CANCELLED", "execute", message));
  }

  /** Some are normal: they cross the answer. */
  #vainCancel(): void {
    this.#vainCancels++;
    if (this.#vainCancels <= maxVainCancels) return;
    const message = `more than ${maxVainCancels} cancels have had no request to end`;
    throw new ChannelViolation("too_many_cancels", message);
  }

  /** Waits until the request may start. */
  async #start(request: ProgramRequest): Promise<void> {
    if (this.#inFlight.has(request.id)) {
      throw new ChannelViolation("duplicate_id", "an id is twice in flight");
    }
    const { signal } = this.#closing;
    await sentBelow(maxUnsentBytes, this.#channel, signal);
    const isCall = request.type === "run_tool" || request.type === "run_chain";
    const permit = await (isCall ? this.#calls : this.#lookups).acquire(signal);
    if (signal.aborted) {
      // It closed after the permit was granted.
      permit[Symbol.dispose]();
      signal.throwIfAborted();
    }
    const running = this.#send(request.id, this.#answer(request), permit);
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  /** Never rejects. Nothing refers to the request, or to a large answer, after that. */
  async #answer(request: ProgramRequest): Promise<KeptAnswer> {
    const controller = new AbortController();
    this.#inFlight.set(request.id, controller);
    const line = await answerLine(this.#gateway, request, controller.signal);
    return await this.#answers.keep(line, this.#closing.signal);
  }

  /** Never rejects. */
  async #send(id: string, answer: Promise<KeptAnswer>, permit: Disposable): Promise<void> {
    using _permit = permit;
    const { signal } = this.#closing;
    await using kept = await answer;
    // The program may use the id again when it has the answer.
    const onTurn = (): void => void this.#inFlight.delete(id);
    try {
      await this.#answers.send(kept, onTurn, signal);
    } catch (error) {
      if (!signal.aborted) this.#close(endBy(error));
    }
  }

  #close(end: ChannelEnd): void {
    if (this.#closing.signal.aborted) return;
    const message = `The channel to the worker is closed: ${end.message}`;
    const reason = new GatewayError("GATEWAY_CLOSED", "execute", message);
    this.#closing.abort(reason);
    for (const controller of this.#inFlight.values()) controller.abort(reason);
    this.#channel.destroy();
    void Promise.all(this.#running).then(() => this.#ended.resolve(end));
  }
}

function endBy(error: unknown): ChannelEnd {
  if (error instanceof ChannelViolation) return { reason: error.reason, message: error.message };
  return { reason: "lost", message: "the connection to the program was lost" };
}
