/**
 * The socket between a worker and a command that waits for its call: tool-runner/PROTOCOL.md,
 * "Parked".
 */
import type { Duplex } from "node:stream";
import { isJsonObject, parseJson } from "../../../support/json/json.ts";
import { maxMessageBytes } from "../../../protocol/limits.ts";
import { SandboxError } from "../../sandbox.ts";
import { CallEnd } from "./call-end.ts";
import { readLine } from "./read-line.ts";

/** Bound of the command's first line. */
const maxLineBytes = 4096;

/** The line of a command; `unclear` when it is none that the protocol knows. */
export type Saying =
  | { readonly kind: "ready" }
  | { readonly kind: "unfit"; readonly reason: string }
  | { readonly kind: "unclear" };

/** The worker's end. The tool's code may have written what it reads. Disposing it closes it. */
export class WakeChannel implements Disposable {
  readonly #stream: Duplex;

  /** @param stream the channel's own, with a listener for errors */
  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  /** Reads the command's first line. Call it once. Never rejects. */
  async said(): Promise<Saying> {
    const line = await readLine(this.#stream, maxLineBytes);
    return line === undefined ? { kind: "unclear" } : meaningOf(line);
  }

  /**
   * Hands the command its call, and listens for how it ends. Throws SandboxError when the command
   * has ended.
   */
  async call(args: string): Promise<CallEnd> {
    const written = new Promise<void>((resolve, reject) => {
      this.#stream.write(`call ${Buffer.byteLength(args)}\n${args}`, (cause) => {
        if (cause) reject(new SandboxError("a parked sandbox has ended", { cause }));
        else resolve();
      });
    });
    // The command begins meanwhile. What it says is read in a later turn.
    const end = new CallEnd(this.#stream, maxMessageBytes);
    await written;
    return end;
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
