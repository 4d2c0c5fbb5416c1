/**
 * The event streams of open pages (HTML Living Standard, 9.2 Server-sent events).
 */
import type { ServerResponse } from "node:http";
import type { OutputPiece, Sample, StatusView, WorkerView } from "../api.ts";
import type { RecentCalls } from "../calls/recent-calls.ts";
import type { Samples } from "../samples.ts";
import { HttpError } from "./failure.ts";

/** Open pages. */
const maxStreams = 16;
/** Milliseconds between two batches of events. */
const flushMs = 100;
/** Calls of a batch, the newest first; the others follow. */
const maxCallsPerFlush = 50;
/** Characters of statuses and output of a batch; older ones are in the call's detail only. */
const maxTextPerFlush = 64 * 1024;
/** Bytes that a page may leave unread before its stream ends; it comes again. */
const maxUnreadBytes = 4 * 1024 * 1024;

/** Sources of the events. */
export interface StreamParts {
  readonly view: () => WorkerView;
  readonly calls: Pick<RecentCalls, "views" | "get" | "onChange">;
  readonly samples: Pick<Samples, "all" | "onSample">;
}

/** A status, or a piece of output. */
type TextEvent = readonly ["status", StatusView] | readonly ["output", OutputPiece];

/** Its owner disposes it, which ends all streams. */
export class EventStreams implements Disposable {
  readonly #parts: StreamParts;
  readonly #streams = new Set<ServerResponse>();
  /** Ids of changed calls, the newest change last. */
  readonly #changed = new Set<string>();
  readonly #owned = new DisposableStack();
  #texts: TextEvent[] = [];
  #textLength = 0;
  #flushing: NodeJS.Timeout | undefined;
  #state = "";

  constructor(parts: StreamParts) {
    this.#parts = parts;
    const { calls, samples } = parts;
    this.#owned.use(
      calls.onChange({
        call: (id) => this.#changeCall(id),
        status: (status) => this.#addText(["status", status]),
        output: (piece) => this.#addText(["output", piece]),
      }),
    );
    this.#owned.use(samples.onSample((sample) => this.#onSample(sample)));
  }

  /** Streams events until the page or the owner ends it. Throws HttpError. */
  open(response: ServerResponse): void {
    if (this.#streams.size >= maxStreams)
      throw new HttpError(429, "TOO_MANY_PAGES", `At most ${maxStreams} pages can be open`);
    // The page gets the present state below.
    this.#flush();
    this.#sendState();
    response.writeHead(200, { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" });
    this.#streams.add(response);
    response.on("close", () => this.#streams.delete(response));
    const { view, calls, samples } = this.#parts;
    response.write(
      eventOf("state", view()) + eventOf("calls", calls.views) + eventOf("samples", samples.all),
    );
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#flushing);
    this.#owned.dispose();
    for (const stream of this.#streams) stream.end();
  }

  #changeCall(id: string): void {
    if (this.#streams.size === 0) return;
    this.#changed.delete(id);
    this.#changed.add(id);
    this.#flushLater();
  }

  #addText(event: TextEvent): void {
    if (this.#streams.size === 0) return;
    this.#texts.push(event);
    this.#textLength += event[1].text.length;
    while (this.#textLength > maxTextPerFlush)
      this.#textLength -= this.#texts.shift()?.[1].text.length ?? 0;
    this.#flushLater();
  }

  #onSample(sample: Sample): void {
    if (this.#streams.size === 0) return;
    this.#sendState();
    this.#send(eventOf("sample", sample));
  }

  /** Sends the worker's state where it has changed. */
  #sendState(): void {
    const state = eventOf("state", this.#parts.view());
    if (state !== this.#state) this.#send(state);
    this.#state = state;
  }

  #flushLater(): void {
    this.#flushing ??= setTimeout(() => this.#flush(), flushMs).unref();
  }

  #flush(): void {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    const { calls } = this.#parts;
    const events: string[] = [];
    for (const id of [...this.#changed].toReversed()) {
      const call = calls.get(id);
      // Nobody sees a call that is forgotten.
      if (call !== undefined && events.length >= maxCallsPerFlush) continue;
      this.#changed.delete(id);
      if (call !== undefined) events.push(eventOf("call", call.view));
    }
    for (const [name, data] of this.#texts) events.push(eventOf(name, data));
    this.#texts = [];
    this.#textLength = 0;
    if (events.length > 0) this.#send(events.join(""));
    if (this.#changed.size > 0) this.#flushLater();
  }

  #send(text: string): void {
    for (const stream of this.#streams) {
      if (stream.writableLength > maxUnreadBytes) stream.destroy();
      else stream.write(text);
    }
  }
}

/** JSON has no line break but `\n` in strings, which it escapes. */
function eventOf(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
