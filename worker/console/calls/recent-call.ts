/**
 * What the console keeps of one call.
 */
import { StringDecoder } from "node:string_decoder";
import type {
  CallEnding,
  CallFollower,
  CallStep,
  CallTrace,
  OutputStream,
  ReceivedCall,
  RunFacts,
} from "../../telemetry/call-follower.ts";
import type { CallView, OutputPiece, OutputView, StatusView } from "../api.ts";

/** The newest statuses, and characters of each. */
const maxStatuses = 50;
const maxStatusLength = 2_000;
/** Characters of the end of each stream, and of a piece of it. */
const maxOutputLength = 65_536;
const maxPieceLength = 8_192;

/** Gets each change. Neither throws nor waits. */
export interface CallListener {
  /** A call has changed. */
  call(id: string): void;
  status(status: StatusView): void;
  output(piece: OutputPiece): void;
}

/** Times of a call: the time of day, and a monotonic one. */
export interface CallClock {
  nowMs(): number;
  monotonicMs(): number;
}

/** How a call is kept. */
export interface RecentCallOptions {
  readonly id: string;
  readonly number: number;
  readonly isOwn: boolean;
  readonly keepsOutput: boolean;
  readonly trace: CallTrace | undefined;
  readonly clock: CallClock;
  readonly listener: CallListener;
  /** Called once, after the last change. */
  readonly onEnd: (call: RecentCall) => void;
}

type Facts = Omit<CallView, "id" | "number" | "isOwn" | "phases">;

/** Follows one call from its receipt on, and shows it. */
export class RecentCall implements CallFollower {
  readonly id: string;
  /** Undefined where output is not kept. */
  readonly printed: CallFollower["printed"];
  readonly #options: RecentCallOptions;
  readonly #beganMs: number;
  readonly #phases: { step: CallStep; startMs: number; endMs: number | null }[];
  #statuses: StatusView[] = [];
  readonly #output = new Map<OutputStream, OutputEnd>();
  #facts: Facts;
  #cancel: (() => void) | undefined;

  constructor(received: ReceivedCall, options: RecentCallOptions) {
    const { id, keepsOutput, trace, clock } = options;
    this.id = id;
    this.#options = options;
    this.#beganMs = clock.monotonicMs();
    this.#phases = [{ step: "receive", startMs: 0, endMs: null }];
    this.printed = keepsOutput ? (stream, chunk) => this.#print(stream, chunk) : undefined;
    this.#facts = {
      tool: null,
      correlationId: received.correlationId ?? null,
      traceId: trace?.traceId ?? null,
      queue: received.queue ?? null,
      deliveryCount: received.deliveryCount,
      receivedAtMs: clock.nowMs(),
      durationMs: null,
      outcome: null,
      settlement: null,
      profile: null,
      start: null,
      backend: null,
      limits: [],
      unenforced: [],
      cpuMs: null,
      peakMemoryBytes: null,
      limitReached: null,
      isCancelled: false,
    };
  }

  /** As it is now. */
  get view(): CallView {
    const { id, number, isOwn } = this.#options;
    return { id, number, isOwn, ...this.#facts, phases: this.#phases.map((each) => ({ ...each })) };
  }

  get statuses(): readonly StatusView[] {
    return this.#statuses;
  }

  get output(): readonly OutputView[] {
    return Array.from(this.#output, ([stream, { text, isCut }]) => ({ stream, text, isCut }));
  }

  /** Cancels it. False before that is possible, and once its tool has ended. */
  cancel(): boolean {
    if (this.#cancel === undefined) return false;
    this.#set({ isCancelled: true });
    this.#cancel();
    return true;
  }

  /** Gives up the memory of statuses and output. */
  forgetTexts(): void {
    this.#statuses = [];
    this.#output.clear();
  }

  enter(step: CallStep): void {
    const atMs = this.#elapsedMs();
    this.#leave(atMs);
    this.#phases.push({ step, startMs: atMs, endMs: null });
    if (step === "publish") this.#cancel = undefined;
    this.#changed();
  }

  resolved(tool: string): void {
    this.#set({ tool });
  }

  under(profile: string): void {
    this.#set({ profile });
  }

  ran({ start, backend, limits, unenforced, cpuMs, peakMemoryBytes }: RunFacts): void {
    const usage = { cpuMs: cpuMs ?? null, peakMemoryBytes: peakMemoryBytes ?? null };
    this.#set({ start, backend, limits, unenforced, ...usage });
  }

  limitReached(limit: string): void {
    this.#set({ limitReached: limit });
  }

  cancellable(cancel: () => void): void {
    this.#cancel = cancel;
  }

  status(text: string): void {
    const { id, clock, listener } = this.#options;
    const shown = text.slice(0, maxStatusLength).toWellFormed();
    const status = { callId: id, atMs: clock.nowMs(), text: shown };
    this.#statuses.push(status);
    if (this.#statuses.length > maxStatuses) this.#statuses.shift();
    listener.status(status);
  }

  end({ outcome, settlement }: CallEnding): void {
    const durationMs = this.#elapsedMs();
    this.#leave(durationMs);
    this.#cancel = undefined;
    const isCancelled = this.#facts.isCancelled && outcome === "CANCELLED";
    this.#set({ durationMs, outcome, settlement, isCancelled });
    this.#options.onEnd(this);
  }

  #print(stream: OutputStream, chunk: Uint8Array): void {
    const end = this.#output.get(stream) ?? new OutputEnd();
    this.#output.set(stream, end);
    const text = end.take(chunk);
    const piece = { callId: this.id, stream, text: text.slice(-maxPieceLength) };
    if (text !== "") this.#options.listener.output(piece);
  }

  #leave(atMs: number): void {
    const last = this.#phases.at(-1);
    if (last !== undefined) last.endMs = atMs;
  }

  #elapsedMs(): number {
    return this.#options.clock.monotonicMs() - this.#beganMs;
  }

  #set(facts: Partial<Facts>): void {
    this.#facts = { ...this.#facts, ...facts };
    this.#changed();
  }

  #changed(): void {
    this.#options.listener.call(this.id);
  }
}

/** The end of a stream as text. */
class OutputEnd {
  text = "";
  isCut = false;
  readonly #decoder = new StringDecoder("utf8");

  /** The text of the chunk. */
  take(chunk: Uint8Array): string {
    const text = this.#decoder.write(Buffer.from(chunk));
    const all = this.text + text;
    this.isCut ||= all.length > maxOutputLength;
    this.text = all.slice(-maxOutputLength);
    return text;
  }
}
