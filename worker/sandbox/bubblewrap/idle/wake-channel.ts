/**
 * The socket between a worker and a command that waits for its call: tool-runner/PROTOCOL.md,
 * "Parked".
 */
import type { Duplex } from "node:stream";
import { isJsonObject, parseJson } from "../../../support/json/json.ts";
import { SandboxError } from "../../sandbox.ts";
import { readLine } from "./read-line.ts";

/** Bound of the command's one line. */
const maxLineBytes = 4096;

const callLine = "call\n";

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

  /** Reads the command's line. Call it once. Never rejects. */
  async said(): Promise<Saying> {
    const line = await readLine(this.#stream, maxLineBytes);
    return line === undefined ? { kind: "unclear" } : meaningOf(line);
  }

  /** Wakes the command. Throws SandboxError when it has ended. */
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
