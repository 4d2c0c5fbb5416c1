/**
 * Lines from processes that run a tool's code.
 */
import type { Duplex } from "node:stream";

const newline = 0x0a;

/**
 * The next line of a stream, without its end. Undefined when the stream ends before, or the line
 * has `maxBytes` or more. The rest stays in the stream, which is paused. Never rejects.
 */
export function readLine(stream: Duplex, maxBytes: number): Promise<Buffer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
  let held: Buffer = Buffer.alloc(0);
  const finish = (line?: Buffer): void => {
    stream.off("data", take).off("close", onEnd).off("end", onEnd).pause();
    resolve(line);
  };
  const onEnd = (): void => finish();
  const take = (chunk: Buffer): void => {
    held = Buffer.concat([held, chunk]);
    const end = held.indexOf(newline);
    if (end === -1 && held.byteLength < maxBytes) return;
    if (end === -1 || end >= maxBytes) return finish();
    finish(held.subarray(0, end));
    if (held.byteLength > end + 1) stream.unshift(held.subarray(end + 1));
  };
  if (stream.destroyed || stream.readableEnded) resolve(undefined);
  else stream.on("data", take).on("close", onEnd).on("end", onEnd).resume();
  return promise;
}
