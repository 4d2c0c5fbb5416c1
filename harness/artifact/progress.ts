/**
 * Shows on a terminal how far a transfer is.
 */
import type { Clock } from "../../worker/support/clock.ts";
import type { Screen } from "../invoke/screen.ts";

/** Milliseconds before the first line, so that small files show none, and between two. */
const [quietMs, intervalMs] = [1_000, 100];

const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** One line, rewritten in place; nothing where the screen is no terminal. Disposing clears it. */
export class Progress implements Disposable {
  readonly #screen: Screen;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #shownAtMs: number | undefined;

  constructor(screen: Screen, clock: Clock) {
    this.#screen = screen;
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
  }

  /** Passes chunks on, of `sizeBytes` in all where that is known. */
  async *follow(chunks: AsyncIterable<Uint8Array>, sizeBytes?: number): AsyncGenerator<Uint8Array> {
    let passedBytes = 0;
    for await (const chunk of chunks) {
      yield chunk;
      passedBytes += chunk.byteLength;
      this.#show(passedBytes, sizeBytes);
    }
  }

  [Symbol.dispose](): void {
    if (this.#shownAtMs !== undefined) this.#screen.rewrite("");
  }

  #show(passedBytes: number, sizeBytes: number | undefined): void {
    const nowMs = this.#clock.monotonicMs();
    const elapsedMs = nowMs - this.#startedAtMs;
    const isDue = elapsedMs >= quietMs && nowMs - (this.#shownAtMs ?? -Infinity) >= intervalMs;
    if (!isDue || !this.#screen.isTerminal) return;
    this.#shownAtMs = nowMs;
    const speed = `${quantity((passedBytes / elapsedMs) * 1000)}/s`;
    this.#screen.rewrite(
      sizeBytes === undefined
        ? `${quantity(passedBytes)}, ${speed}`
        : `${Math.floor((passedBytes / sizeBytes) * 100)} % of ${quantity(sizeBytes)}, ${speed}`,
    );
  }
}

/** A number of bytes for people, in powers of 1,024. */
export function quantity(bytes: number): string {
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
