/**
 * The calls a second that workers of one group answer when there are always more.
 */
import { type LoopOptions, Rig, type RigOptions, type Window } from "./rig.ts";
import { type Use, availableCores } from "./use.ts";

/** Slots of each worker. */
export const slots = 4;
/** Calls of each worker that wait for a slot, beside the running ones. */
const waiting = 4;
const times = { warmUpMs: 1_500, windowMs: 4_000 };
/** Calls of each worker before those that count: by then most of its code is compiled. */
const warmUpCalls = 100;

/** What so many workers answered. */
export interface Saturation {
  readonly workers: number;
  readonly slots: number;
  readonly callers: number;
  readonly calls: number;
  /** Calls that found an idle sandbox. */
  readonly hits: number;
  readonly use: Use;
  /** Processors that other programs left. */
  readonly availableCores: number;
}

/** Workers that always have calls. Its owner disposes it. */
export class Saturated implements AsyncDisposable {
  readonly #rig: Rig;
  readonly #windows: Window[] = [];

  private constructor(rig: Rig) {
    this.#rig = rig;
  }

  static async start(options: Omit<RigOptions, "slots">): Promise<Saturated> {
    return new Saturated(await Rig.start({ ...options, slots }));
  }

  /** Measures one more window. */
  async measure(): Promise<void> {
    await this.#rig.quiet();
    const workers = this.#rig.workers.length;
    const callers = workers * (slots + waiting);
    const loop: LoopOptions = { ...times, callers, warmUpCalls: warmUpCalls * workers };
    this.#windows.push(await this.#rig.loop(loop));
  }

  /** All windows together. */
  result(cores: number): Saturation {
    const sum = (part: keyof Window): number =>
      this.#windows.reduce((total, window) => total + window[part], 0);
    const use: Use = {
      seconds: sum("seconds"),
      workers: sum("workers"),
      loops: sum("loops"),
      sandboxes: sum("sandboxes"),
      broker: sum("broker"),
      client: sum("client"),
      clientLoop: sum("clientLoop"),
      machine: sum("machine"),
    };
    const workers = this.#rig.workers.length;
    return {
      ...{ workers, slots, callers: workers * (slots + waiting) },
      ...{ calls: sum("calls"), hits: sum("hits"), use },
      availableCores: availableCores(use, cores),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#rig[Symbol.asyncDispose]();
  }
}
