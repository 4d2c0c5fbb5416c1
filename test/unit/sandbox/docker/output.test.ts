/**
 * The frames of an attached container.
 */
import { Duplex, PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OutputFrames, readOutputs } from "../../../../worker/sandbox/docker/engine/output.ts";

function frame(stream: number, content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  const header = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(bytes.byteLength, 4);
  return Buffer.concat([header, bytes]);
}

describe("frames of output", () => {
  test("are what was written, however they are cut", () => {
    const piece = fc.record({ stream: fc.constantFrom(1, 2), content: fc.string() });
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.nat({ max: 200 })), (pieces, cuts) => {
        const bytes = Buffer.concat(pieces.map(({ stream, content }) => frame(stream, content)));
        const frames = new OutputFrames();
        const seen = { stdout: "", stderr: "" };
        const ends = [...cuts, bytes.byteLength].sort((one, other) => one - other);
        let from = 0;
        for (const end of ends) {
          for (const { stream, bytes: part } of frames.take(bytes.subarray(from, end)))
            seen[stream] += part.toString("latin1");
          from = Math.min(end, bytes.byteLength);
        }
        const written = (wanted: number) =>
          Buffer.concat(
            pieces.map(({ stream, content }) => Buffer.from(stream === wanted ? content : "")),
          ).toString("latin1");
        expect(seen).toEqual({ stdout: written(1), stderr: written(2) });
      }),
    );
  });

  test("of another stream are refused", () => {
    expect(() => [...new OutputFrames().take(frame(3, "x"))]).toThrow("unknown stream 3");
  });
});

describe("outputs of a connection", () => {
  test("end with it, and are whole", async () => {
    const connection = new PassThrough();
    const { stdout, stderr, ended } = readOutputs(connection);
    connection.write(frame(1, "one "));
    connection.write(frame(2, "aside"));
    connection.end(frame(1, "two"));
    expect(await Promise.all([text(stdout), text(stderr)])).toEqual(["one two", "aside"]);
    await ended;
  });

  test("are read no faster than their reader reads", async () => {
    let asked = 0;
    const chunk = frame(1, Buffer.alloc(16 * 1024));
    const connection = new Duplex({
      read() {
        asked += 1;
        this.push(asked > 100 ? null : chunk);
      },
      write: (_chunk, _encoding, done) => done(),
    });
    const { stdout, stderr } = readOutputs(connection);
    stderr.resume();
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toBeLessThan(20);
    let bytes = 0;
    for await (const part of stdout) bytes += (part as Buffer).byteLength;
    expect(bytes).toBe(100 * 16 * 1024);
  });

  test("end with a connection that is lost, or says what is no frame", async () => {
    for (const lose of [
      (connection: PassThrough) => connection.destroy(),
      (connection: PassThrough) => connection.write(frame(9, "")),
    ]) {
      const connection = new PassThrough();
      const { stdout, stderr, ended } = readOutputs(connection);
      connection.write(frame(1, "so far"));
      lose(connection);
      expect((await Promise.all([text(stdout), text(stderr)]))[1]).toBe("");
      await ended;
    }
  });
});
