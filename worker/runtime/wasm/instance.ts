/**
 * One instance of the engine, for one program. Runs in a thread of its own: calls into the engine
 * last as long as the program likes.
 */
import { EvalFlags, type JSValueHandle, type QuickJS } from "quickjs-wasi";
import { syntaxFailure, thrownFailure, type Script } from "./failures.ts";
import type { GuestHost, Thrown } from "./guest/contract.ts";
import { maxMessageBytes, maxValueDepth } from "./limits.ts";
import { type Machine, startMachine } from "./machine.ts";
import type { Engine, Outcome } from "./messages.ts";
import { engineMistake } from "./source.ts";

const readOut = `typeof __out === "undefined" ? undefined : __out`;
const outOfMemory = "InternalError: out of memory";
/** An engine without memory throws null, where it has none left for an error. */
const noErrorText = "null";
/** Used memory from which on texts are believed that a program can throw, too. */
const fullShare = 0.75;

const jobErrorStart = "Job execution error: ";

/** How far a program is. */
type Part = "program" | "last" | "out";

export class Instance {
  readonly #machine: Machine;
  readonly #vm: QuickJS;
  #script: Script = { name: "", source: "" };
  #part: Part = "program";
  #awaited: JSValueHandle;
  #last: JSValueHandle;
  #isSound = true;

  private constructor(machine: Machine) {
    this.#machine = machine;
    this.#vm = machine.vm;
    this.#awaited = machine.vm.undefined;
    this.#last = machine.vm.undefined;
  }

  /** A fresh instance, with all that programs find. */
  static async create(engine: Engine, host: GuestHost): Promise<Instance> {
    return new Instance(await startMachine(engine, host));
  }

  /** Bytes that it has taken. */
  get usedBytes(): number {
    return this.#machine.memory.buffer.byteLength;
  }

  /** False after what may have left the engine in any state. */
  get isSound(): boolean {
    return this.#isSound;
  }

  /** Starts the program. Each of these resolves with an outcome once the program is over. */
  async run(script: Script): Promise<Outcome | undefined> {
    this.#script = script;
    const { source, name } = script;
    return this.#guard(async () => {
      try {
        this.#awaited = this.#vm.evalCode(source, name, EvalFlags.ASYNC);
      } catch (error) {
        const { message, stack = "" } = error as Error;
        const mistake = engineMistake(message, stack, source, name);
        if (mistake === undefined || (error as Error).name !== "SyntaxError") throw error;
        return syntaxFailure(mistake);
      }
      return this.#advance();
    });
  }

  async answer(id: number, line: string): Promise<Outcome | undefined> {
    return this.#guard(() => {
      using text = this.#vm.newString(line);
      using number = this.#vm.newNumber(id);
      this.#vm.callFunction(this.#machine.guest.answer, this.#vm.undefined, number, text).dispose();
      return this.#advance();
    });
  }

  async fire(timerId: number): Promise<Outcome | undefined> {
    return this.#guard(() => {
      using number = this.#vm.newNumber(timerId);
      this.#vm.callFunction(this.#machine.guest.fire, this.#vm.undefined, number).dispose();
      return this.#advance();
    });
  }

  /** What the program came to where it still waits and nothing can come. */
  stuck(): Outcome {
    return { kind: "failed", message: "Program awaits a promise that nothing settles" };
  }

  /** The outcome of an action, also of one that throws. */
  async #guard(action: () => Promise<Outcome | undefined>): Promise<Outcome | undefined> {
    try {
      return await action();
    } catch (error) {
      if (isException(error)) return this.#thrown(error.handle);
      const text = error instanceof Error ? error.message : "";
      // Thrown by a callback of a FinalizationRegistry.
      if (text.startsWith(jobErrorStart)) {
        const thrown = text.slice(jobErrorStart.length);
        return this.#failed({ text: thrown, stack: "", isOutOfMemory: false });
      }
      // Not the program's error but one of the engine, such as a trap.
      this.#isSound = false;
      if (this.#isFull || text.includes("malloc")) return memoryLimit();
      const deep = error instanceof RangeError ? ": it nests too deeply" : "";
      return { kind: "failed", message: `Program ended its engine${deep}` };
    }
  }

  async #advance(): Promise<Outcome | undefined> {
    for (;;) {
      this.#vm.executePendingJobs();
      const state = this.#awaited.isPromise ? this.#awaited.promiseState : settled;
      if (state === rejected) {
        const result = await this.#vm.resolvePromise(this.#awaited);
        return this.#thrown("error" in result ? result.error : result.value);
      }
      const [unhandled] = this.#machine.rejections.values();
      if (unhandled !== undefined) return this.#thrown(unhandled);
      if (state === pending) return undefined;
      const outcome = await this.#next();
      if (outcome !== undefined) return outcome;
    }
  }

  /** Goes on after what was awaited: the program, its last expression, `__out`. */
  async #next(): Promise<Outcome | undefined> {
    const result = await this.#vm.resolvePromise(this.#awaited);
    if ("error" in result) return this.#thrown(result.error);
    switch (this.#part) {
      case "program":
        this.#part = "last";
        // The promise of a script is for an object around its value.
        this.#awaited = result.value.getProp("value");
        return undefined;
      case "last":
        this.#part = "out";
        this.#last = result.value;
        this.#awaited = this.#vm.evalCode(readOut, "<runtime>");
        return undefined;
      case "out":
        return this.#valueOf(result.value);
    }
  }

  #valueOf(out: JSValueHandle): Outcome {
    const isLast = out.isUndefined;
    try {
      using depth = this.#vm.newNumber(maxValueDepth);
      const value = isLast ? this.#last : out;
      using text = this.#vm.callFunction(
        this.#machine.guest.encode,
        this.#vm.undefined,
        value,
        depth,
      );
      const json = text.isString ? text.toString() : "null";
      const bytes = Buffer.byteLength(json);
      if (bytes <= maxMessageBytes) return { kind: "value", json };
      const message = `the value has ${bytes} bytes, more than ${maxMessageBytes}`;
      return { kind: "limit", limit: "value_bytes", message };
    } catch (error) {
      if (!isException(error)) throw error;
      const failure = this.#thrown(error.handle);
      if (failure.kind !== "failed") return failure;
      if (isLast) return { kind: "value", json: "null" };
      const message = failure.message.replace("Program threw TypeError:", "__out is not JSON:");
      return { ...failure, message };
    }
  }

  #thrown(thrown: JSValueHandle): Outcome {
    return this.#failed(this.#describe(thrown));
  }

  #failed(said: Thrown): Outcome {
    const isWanting = said.text === noErrorText || said.text.startsWith(outOfMemory);
    if (said.isOutOfMemory || (isWanting && this.#isFull)) {
      this.#isSound = false;
      return memoryLimit();
    }
    return thrownFailure(said, this.#script);
  }

  #describe(thrown: JSValueHandle): Thrown {
    try {
      using text = this.#vm.callFunction(this.#machine.guest.describe, this.#vm.undefined, thrown);
      const said = JSON.parse(text.isString ? text.toString() : "{}") as Partial<
        Record<keyof Thrown, unknown>
      >;
      const isOutOfMemory = said.isOutOfMemory === true;
      return { text: String(said.text), stack: String(said.stack), isOutOfMemory };
    } catch (error) {
      if (!isException(error)) throw error;
      const unsaid = this.#isFull ? noErrorText : "(its text cannot be had)";
      return { text: unsaid, stack: "", isOutOfMemory: false };
    }
  }

  get #isFull(): boolean {
    return this.usedBytes > fullShare * this.#machine.memoryBytes;
  }
}

const pending = 0;
const settled = 1;
const rejected = 2;

function memoryLimit(): Outcome {
  return { kind: "limit", limit: "memory", message: "memory" };
}

/** An exception of the engine: what the program's side threw. */
function isException(error: unknown): error is { readonly handle: JSValueHandle } {
  return error instanceof Error && "handle" in error;
}
