/**
 * The marks of one call: `{call}.1`, `{call}.2` for each started run, `{call}.unpublished` with an
 * answer that its worker could not publish, `{call}.answered` with the answer, and
 * `{call}.replayable`, a note without content that the call was answered.
 */
import type { Mark, MarkStore } from "../../artifacts/marks.ts";

/** Bytes of the largest answer that a mark keeps. */
export const maxKeptAnswerBytes = 64 * 1024;

/** Suffix of notes. */
export const noteEnding = ".replayable";

/** Runs one operation on marks within a time limit. Rejects with StoreError. */
export type UseMarks = <T>(
  operation: (marks: MarkStore, signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
) => Promise<T>;

/** The state of a call by its marks. */
export type MarkedState =
  | {
      readonly kind: "open";
      readonly runs: number;
      /** Stamp of the latest run's mark; undefined without a run. */
      readonly stamp: string | undefined;
      readonly ageMs: number;
    }
  | { readonly kind: "unpublished"; readonly answer: Uint8Array; readonly ageMs: number }
  | { readonly kind: "answered"; readonly answer: Uint8Array | undefined };

const nothing = new Uint8Array();

/** Each method rejects with StoreError, and with its signal's reason. */
export class CallMarks {
  readonly #call: string;
  readonly #use: UseMarks;

  /** @param call hexadecimal */
  constructor(call: string, use: UseMarks) {
    this.#call = call;
    this.#use = use;
  }

  /** @param mayBeReplayed whether a note counts, too */
  async state(signal: AbortSignal, mayBeReplayed: boolean): Promise<MarkedState> {
    const answer = await this.answer(signal);
    if (answer !== undefined) {
      return { kind: "answered", answer: answer.byteLength === 0 ? undefined : answer };
    }
    if (mayBeReplayed && (await this.#read(this.#noted, signal)) !== undefined) {
      return { kind: "answered", answer: undefined };
    }
    const unpublished = await this.#read(this.#unpublished, signal);
    if (unpublished !== undefined) {
      const { content, ageMs } = unpublished;
      return { kind: "unpublished", answer: content, ageMs };
    }
    let last: Mark | undefined;
    for (let runs = 0; ; runs++) {
      const mark = await this.#read(this.#run(runs + 1), signal);
      if (mark === undefined) {
        return { kind: "open", runs, stamp: last?.stamp, ageMs: last?.ageMs ?? 0 };
      }
      last = mark;
    }
  }

  /** Creates the mark of a run, counted from 1. Resolves to whether this worker was the first. */
  begin(run: number): Promise<boolean> {
    return this.#use((marks, limited) => marks.create(this.#run(run), nothing, limited));
  }

  touch(run: number): Promise<void> {
    return this.#use((marks, limited) => marks.touch(this.#run(run), limited));
  }

  forget(run: number): Promise<void> {
    return this.#use((marks, limited) => marks.remove(this.#run(run), limited));
  }

  /** Empty for an answer that was too large to keep; undefined without an answer. */
  async answer(signal?: AbortSignal): Promise<Uint8Array | undefined> {
    return (await this.#read(this.#answered, signal))?.content;
  }

  async keepAnswer(payload: Uint8Array): Promise<void> {
    const content = payload.byteLength > maxKeptAnswerBytes ? nothing : payload;
    await this.#use((marks, limited) => marks.create(this.#answered, content, limited));
  }

  /** Resolves to whether the answer is small enough to keep. */
  async keepUnpublished(payload: Uint8Array): Promise<boolean> {
    if (payload.byteLength > maxKeptAnswerBytes) return false;
    await this.#use((marks, limited) => marks.create(this.#unpublished, payload, limited));
    return true;
  }

  note(): Promise<void> {
    return this.#use((marks, limited) => marks.note(this.#noted, limited));
  }

  #read(name: string, signal?: AbortSignal): Promise<Mark | undefined> {
    return this.#use((marks, limited) => marks.read(name, limited), signal);
  }

  #run(run: number): string {
    return `${this.#call}.${run}`;
  }

  get #answered(): string {
    return `${this.#call}.answered`;
  }

  get #unpublished(): string {
    return `${this.#call}.unpublished`;
  }

  get #noted(): string {
    return this.#call + noteEnding;
  }
}
