/**
 * The event streams of open pages (HTML Living Standard, 9.2 Server-sent events).
 */
import type { ServerResponse } from "node:http";
import type { CallView, OutputPiece, Sample, StatusView, WorkerView } from "../api.ts";
import type { RecentCalls } from "../calls/recent-calls.ts";
import type { Samples } from "../samples.ts";
import { HttpError } from "./failure.ts";

/** Open pages. */
const maxStreams = 16;
/** Milliseconds between two sendings of what has changed. */
const flushMs = 100;
/** Calls of one sending; the others follow. */
const maxCallsPerFlush = 50;
/** Statuses and pieces of output of one sending; further ones are in the call's detail only. */
const maxLinesPerFlush = 200;
/** Bytes that a page may leave unread before its stream ends; it comes again. */
const maxUnreadBytes = 4 * 1024 * 1024;

/** What the streams tell of. */
export interface StreamParts {
  readonly view: () => WorkerView;
  readonly calls: Pick<RecentCalls, "views" | "onChange">;
  readonly samples: Pick<Samples, "all" | "onSample">;
}

type Line = ["status", StatusView] | ["output", OutputPiece];

/** Its owner disposes it, which ends all streams. */
export class EventStreams implements Disposable {
  readonly #parts: StreamParts;
  readonly #streams = new Set<ServerResponse>();
  readonly #changed = new Map<string, CallView>();
  readonly #owned = new DisposableStack();
  #lines: Line[] = [];
  #flushing: NodeJS.Timeout | undefined;
  #state = "";

  constructor(parts: StreamParts) {
    this.#parts = parts;
    const { calls, samples } = parts;
    this.#owned.use(
      calls.onChange({
        call: (view) => this.#later(() => void this.#changed.set(view.id, view)),
        status: (status) => this.#later(() => void this.#lines.push(["status", status])),
        output: (piece) => this.#later(() => void this.#lines.push(["output", piece])),
      }),
    );
    this.#owned.use(samples.onSample((sample) => this.#onSample(sample)));
  }

  /** Streams events until the page or the owner ends it. Throws HttpError. */
  open(response: ServerResponse): void {
    if (this.#streams.size >= maxStreams)
      throw new HttpError(429, "TOO_MANY_PAGES", `At most ${maxStreams} pages can be open`);
    this.#flush();
    response.writeHead(200, { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" });
    this.#streams.add(response);
    response.on("close", () => this.#streams.delete(response));
    const { view, calls, samples } = this.#parts;
    this.#state = JSON.stringify(view());
    response.write(
      eventOf("state", this.#state) +
        eventOf("calls", JSON.stringify(calls.views)) +
        eventOf("samples", JSON.stringify(samples.all)),
    );
  }

  /** Tells the pages of the worker's state where it has changed. */
  tellState(): void {
    if (this.#streams.size === 0) return;
    const state = JSON.stringify(this.#parts.view());
    if (state === this.#state) return;
    this.#state = state;
    this.#send(eventOf("state", state));
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#flushing);
    this.#owned.dispose();
    for (const stream of this.#streams) stream.end();
  }

  #onSample(sample: Sample): void {
    if (this.#streams.size === 0) return;
    this.tellState();
    this.#send(eventOf("sample", JSON.stringify(sample)));
  }

  /** Notes a change for the next sending, if there is a page. */
  #later(note: () => void): void {
    if (this.#streams.size === 0) return;
    note();
    if (this.#lines.length > maxLinesPerFlush) this.#lines.shift();
    this.#flushing ??= setTimeout(() => this.#flush(), flushMs).unref();
  }

  #flush(): void {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    const calls = [...this.#changed.values()].slice(0, maxCallsPerFlush);
    for (const { id } of calls) this.#changed.delete(id);
    const events = [
      ...calls.map((call) => eventOf("call", JSON.stringify(call))),
      ...this.#lines.map(([name, data]) => eventOf(name, JSON.stringify(data))),
    ];
    this.#lines = [];
    if (events.length > 0) this.#send(events.join(""));
    if (this.#changed.size > 0) this.#later(() => undefined);
  }

  #send(text: string): void {
    for (const stream of this.#streams) {
      if (stream.writableLength > maxUnreadBytes) stream.destroy();
      else stream.write(text);
    }
  }
}

/** JSON has no line break outside of `\n` in strings, which it escapes. */
function eventOf(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`;
}
