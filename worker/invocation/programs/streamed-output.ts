/**
 * The output of a program as statuses, for a caller that wants it while the program runs.
 */
import type { StatusListener } from "../../protocol/messages/status-details.ts";
import type { Execution } from "../../sandbox/sandbox.ts";
import { withoutDeceptive } from "../../support/text/deceptive.ts";
import { TextLines } from "../../support/text/text-lines.ts";
import type { OutputStream } from "../../telemetry/call-follower.ts";

/** Bytes of each stream; a mark stands for later ones. */
export const maxStreamedBytes = 64 * 1024;
/** Milliseconds between two statuses of a stream, so that none is replaced by a later one. */
const intervalMs = 250;
/** Characters of a status' text. */
const maxTextLength = 200;

/** Sends whole lines. Disposing sends the rest. */
export function streamOutput(
  execution: Pick<Execution, OutputStream>,
  onStatus: StatusListener,
): Disposable {
  const streams = (["stdout", "stderr"] as const).map(
    (name) => new StreamedOutput(name, execution[name], onStatus),
  );
  return {
    [Symbol.dispose]: () => {
      for (const stream of streams) stream[Symbol.dispose]();
    },
  };
}

class StreamedOutput implements Disposable {
  readonly #name: OutputStream;
  readonly #onStatus: StatusListener;
  readonly #lines = new TextLines();
  readonly #waiting: string[] = [];
  #bytes = 0;
  #isCut = false;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(name: OutputStream, stream: Execution[OutputStream], onStatus: StatusListener) {
    this.#name = name;
    this.#onStatus = onStatus;
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  #take(chunk: Buffer): void {
    if (this.#isOver || this.#isCut) return;
    const taken = chunk.subarray(0, maxStreamedBytes - this.#bytes);
    this.#bytes += taken.byteLength;
    this.#waiting.push(...this.#lines.take(taken));
    this.#isCut = taken.byteLength < chunk.byteLength;
    if (this.#isCut) this.#waiting.push(`${this.#lines.rest() ?? ""}…`);
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#send(), intervalMs);
  }

  #send(): void {
    this.#timer = undefined;
    const last = this.#waiting.at(-1);
    if (last === undefined) return;
    const text = this.#waiting.splice(0).join("\n").toWellFormed();
    const shown = withoutDeceptive(last.slice(0, maxTextLength).toWellFormed());
    this.#onStatus(shown, { partialResult: { [this.#name]: text } });
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    const rest = this.#lines.rest();
    if (rest !== undefined) this.#waiting.push(rest);
    this.#send();
  }
}
