/**
 * The socket between a worker and a command that waits for its call: see tool-runner/PROTOCOL.md,
 * "Parked".
 */
import type { Duplex } from "node:stream";
import { isJsonObject, parseJson } from "../../support/json/json.ts";
import { SandboxError } from "../sandbox.ts";

/** Bytes of the one line that the command says. */
const maxLineBytes = 4096;

const newline = 0x0a;
const callLine = "call\n";

/**
 * What a command says of itself; `unclear` when it said nothing that means something, or left
 * without a word.
 */
export type Saying =
  | { readonly kind: "ready" }
  | { readonly kind: "unfit"; readonly reason: string }
  | { readonly kind: "unclear" };

/**
 * The worker's end. What comes out of it was written where the tool's code runs. Disposing it
 * closes it.
 */
export class WakeChannel implements Disposable {
  readonly #stream: Duplex;

  /** @param stream owned by the channel; its errors are heard by whoever made it */
  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  /**
   * The line that the command says; of whatever comes behind it nothing is read. May be called
   * once. Never rejects.
   */
  async said(): Promise<Saying> {
    const { promise, resolve } = Promise.withResolvers<Saying>();
    const unclear = (): void => resolve({ kind: "unclear" });
    let held: Buffer = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      held = Buffer.concat([held, chunk]);
      const end = held.indexOf(newline);
      if (end !== -1 && end < maxLineBytes) resolve(meaningOf(held.subarray(0, end)));
      else if (held.byteLength >= maxLineBytes) unclear();
    };
    this.#stream.on("data", take).once("close", unclear).once("end", unclear).resume();
    const saying = await promise;
    this.#stream.off("data", take).off("close", unclear).off("end", unclear).pause();
    return saying;
  }

  /**
   * Tells the command that its call is there, and has nothing more to say. Throws SandboxError when
   * nobody is there to hear it.
   */
  async call(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#stream.write(callLine, (cause) => {
        if (cause) reject(new SandboxError("a parked sandbox has ended", { cause }));
        else resolve();
      });
    });
    this.#stream.destroy();
  }

  [Symbol.dispose](): void {
    this.#stream.destroy();
  }
}

function meaningOf(line: Uint8Array): Saying {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    return { kind: "unclear" };
  }
  if (!isJsonObject(value)) return { kind: "unclear" };
  if (value["ready"] === true) return { kind: "ready" };
  const reason = value["unfit"];
  return typeof reason === "string" ? { kind: "unfit", reason } : { kind: "unclear" };
}
