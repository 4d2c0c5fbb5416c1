/**
 * The marks of one call: `{call}.1`, `{call}.2` for each run that began, `{call}.unpublished` with
 * an answer that its worker could not publish yet, `{call}.answered` with the answer, and
 * `{call}.replayable`, a note that the call was answered and nothing else.
 */
import type { Mark, MarkStore } from "../../artifacts/marks.ts";

/** Bytes of an answer that is kept for a request that comes twice. */
export const maxKeptAnswerBytes = 64 * 1024;

/** Ends the names of notes. */
export const noteEnding = ".replayable";

/** One operation on marks, within a limit of time. Rejects with StoreError, too. */
export type UseMarks = <T>(
  operation: (marks: MarkStore, signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
) => Promise<T>;

const nothing = new Uint8Array();

/** Names the marks of a call. Each method rejects with StoreError, and with its signal's reason. */
export class CallMarks {
  readonly #call: string;
  readonly #use: UseMarks;

  /** @param call hexadecimal */
  constructor(call: string, use: UseMarks) {
    this.#call = call;
    this.#use = use;
  }

  /** How many runs began, and the mark of the last one. */
  async runs(signal: AbortSignal): Promise<{ runs: number; last: Mark | undefined }> {
    let last: Mark | undefined;
    for (let runs = 0; ; runs++) {
      const mark = await this.#read(this.#run(runs + 1), signal);
      if (mark === undefined) return { runs, last };
      last = mark;
    }
  }

  /** Whether no other worker has started this run, counted from 1. */
  begin(run: number): Promise<boolean> {
    return this.#use((marks, limited) => marks.create(this.#run(run), nothing, limited));
  }

  touch(run: number): Promise<void> {
    return this.#use((marks, limited) => marks.touch(this.#run(run), limited));
  }

  forget(run: number): Promise<void> {
    return this.#use((marks, limited) => marks.remove(this.#run(run), limited));
  }

  /** The answer, empty when it was too large to keep; undefined when there is none. */
  async answer(signal?: AbortSignal): Promise<Uint8Array | undefined> {
    return (await this.#read(this.#answered, signal))?.content;
  }

  async keepAnswer(payload: Uint8Array): Promise<void> {
    const content = payload.byteLength > maxKeptAnswerBytes ? nothing : payload;
    await this.#use((marks, limited) => marks.create(this.#answered, content, limited));
  }

  /** An answer that the worker of the run could not publish when it was kept. */
  unpublished(signal: AbortSignal): Promise<Mark | undefined> {
    return this.#read(this.#unpublished, signal);
  }

  /** Resolves to whether the answer is kept, which is not too large for that. */
  async keepUnpublished(payload: Uint8Array): Promise<boolean> {
    if (payload.byteLength > maxKeptAnswerBytes) return false;
    await this.#use((marks, limited) => marks.create(this.#unpublished, payload, limited));
    return true;
  }

  async isNoted(signal: AbortSignal): Promise<boolean> {
    return (await this.#read(this.#noted, signal)) !== undefined;
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
