/**
 * The stream of an attached container: frames of its output, and its input.
 */
import { type Duplex, PassThrough, type Readable } from "node:stream";
import { SandboxError } from "../../sandbox.ts";

/** A frame begins with its stream, three zeros, and its length as a big-endian number. */
const headerBytes = 8;
const lengthOffset = 4;
const streams = { stdout: 1, stderr: 2 } as const;

/** Bytes of one output, of a frame or a part of it. */
export interface OutputPart {
  readonly stream: keyof typeof streams;
  readonly bytes: Buffer;
}

/** Takes frames apart, however they are cut. */
export class OutputFrames {
  #header = Buffer.alloc(0);
  #stream: OutputPart["stream"] = "stdout";
  #leftBytes = 0;

  /** Yields the parts of a chunk, without waiting for whole frames. Throws SandboxError. */
  *take(chunk: Buffer): Generator<OutputPart, void, undefined> {
    for (let rest = chunk; rest.byteLength > 0;) {
      if (this.#leftBytes === 0) {
        const missing = headerBytes - this.#header.byteLength;
        this.#header = Buffer.concat([this.#header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (this.#header.byteLength === headerBytes) this.#begin();
        continue;
      }
      const bytes = rest.subarray(0, this.#leftBytes);
      this.#leftBytes -= bytes.byteLength;
      rest = rest.subarray(bytes.byteLength);
      yield { stream: this.#stream, bytes };
    }
  }

  #begin(): void {
    const [type] = this.#header;
    if (type !== streams.stdout && type !== streams.stderr)
      throw new SandboxError(`the engine sent a frame of the unknown stream ${type}`);
    this.#stream = type === streams.stdout ? "stdout" : "stderr";
    this.#leftBytes = this.#header.readUInt32BE(lengthOffset);
    this.#header = Buffer.alloc(0);
  }
}

/** The outputs of an attached container. */
export interface Outputs {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Fulfils when all is read, or the connection is lost. */
  readonly ended: Promise<void>;
}

/** Reads a connection, no faster than both outputs are read. */
export function readOutputs(connection: Duplex): Outputs {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const outputs = { stdout, stderr };
  const ended = distribute(connection, outputs)
    // What is lost with the connection is reported by the exit.
    .catch(() => undefined)
    .finally(() => {
      stdout.end();
      stderr.end();
    });
  return { ...outputs, ended };
}

async function distribute(
  connection: Duplex,
  outputs: Readonly<Record<OutputPart["stream"], PassThrough>>,
): Promise<void> {
  const frames = new OutputFrames();
  // The connection stays open for input.
  for await (const chunk of connection.iterator({ destroyOnReturn: false })) {
    for (const { stream, bytes } of frames.take(chunk as Buffer)) {
      const output = outputs[stream];
      if (output.destroyed || output.write(bytes)) continue;
      await drained(output);
    }
  }
}

/** Fulfils when an output takes more, or is closed. */
async function drained(output: PassThrough): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  output.once("drain", resolve).once("close", resolve);
  await promise;
  output.off("drain", resolve).off("close", resolve);
}
