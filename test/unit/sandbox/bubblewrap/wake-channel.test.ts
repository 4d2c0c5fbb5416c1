/**
 * The worker's end of the socket that a parked command waits at.
 */
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, onTestFinished, test } from "vitest";
import { CallEnd } from "../../../../worker/sandbox/bubblewrap/idle/call-end.ts";
import { WakeChannel } from "../../../../worker/sandbox/bubblewrap/idle/wake-channel.ts";
import { SandboxError } from "../../../../worker/sandbox/sandbox.ts";

/** A channel, and the command's end of it. */
async function open() {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const ours = connect((server.address() as AddressInfo).port, "127.0.0.1");
  ours.on("error", () => undefined);
  const [theirs] = (await once(server, "connection")) as [Socket];
  const channel = new WakeChannel(ours);
  onTestFinished(() => {
    channel[Symbol.dispose]();
    theirs.destroy();
    server.close();
  });
  return { channel, theirs, ours };
}

describe("what a command says is", () => {
  test.for([
    ["that it is ready", '{"ready":true}\n', { kind: "ready" }],
    [
      "that it is ready, whatever follows",
      `{"ready": true}\n${"x".repeat(5000)}`,
      { kind: "ready" },
    ],
    ["that it is unfit", '{"unfit":"no"}\n', { kind: "unfit", reason: "no" }],
    ["unclear when it is nothing of these", '{"ready":1,"unfit":2}\n', { kind: "unclear" }],
    ["unclear when it is no object", "[]\n", { kind: "unclear" }],
    ["unclear when it is no JSON", "ready\n", { kind: "unclear" }],
    ["unclear when it is no text", Buffer.from([0xff, 0x0a]), { kind: "unclear" }],
    ["unclear when it goes too deep", `${"[".repeat(4000)}\n`, { kind: "unclear" }],
    ["unclear when it is too long", `"${"x".repeat(4096)}"\n`, { kind: "unclear" }],
    ["unclear when it has no end", "x".repeat(4096), { kind: "unclear" }],
  ] as const)("%s", async ([, said, meaning]) => {
    const { channel, theirs } = await open();
    theirs.write(said);
    expect(await channel.said()).toEqual(meaning);
  });

  test("the same when it comes in pieces", async () => {
    const { channel, theirs } = await open();
    const saying = channel.said();
    for (const piece of ['{"rea', 'dy":tr', "ue}"]) {
      theirs.write(piece);
      await new Promise(setImmediate);
    }
    theirs.write("\n");
    expect(await saying).toEqual({ kind: "ready" });
  });

  test.for(["", '{"ready":true}'])("unclear when it ends after %j", async (said) => {
    const { channel, theirs } = await open();
    theirs.end(said);
    expect(await channel.said()).toEqual({ kind: "unclear" });
  });
});

describe("a call", () => {
  const result = '{"result":{"text":"é"}}';
  const given = `{"result":${Buffer.byteLength(result)}}\n${result}`;
  const done = '{"done":true}\n';

  /** What a command says of its call, after it has said that it is ready. */
  async function ended(pieces: readonly (string | Buffer)[]) {
    const { channel, theirs, ours } = await open();
    theirs.write('{"ready":true}\n');
    await channel.said();
    const end = await channel.call("{}");
    let isDone = false;
    void end.done.then(() => (isDone = true));
    for (const piece of pieces) {
      theirs.write(piece);
      await new Promise(setImmediate);
    }
    theirs.end();
    await expect.poll(() => ours.readableEnded || ours.destroyed || ours.isPaused()).toBe(true);
    return { result: end.result?.toString(), isDone };
  }

  test("is a line with its length, and its text", async () => {
    const { channel, theirs } = await open();
    const heard = text(theirs);
    await channel.call('{"é":1}');
    channel[Symbol.dispose]();
    expect(await heard).toBe('call 8\n{"é":1}');
  });

  test("does not reach who is not there any more", async () => {
    const { channel, ours } = await open();
    ours.destroy();
    await expect(channel.call("{}")).rejects.toThrow(SandboxError);
  });

  test.for([
    ["with its result", [given, done]],
    ["with both at once", [given + done]],
    ["in pieces of a byte", [...Buffer.from(given + done)].map((byte) => Buffer.of(byte))],
  ] as const)("ends %s", async ([, pieces]) => {
    expect(await ended(pieces)).toEqual({ result, isDone: true });
  });

  test("holds no more of a result that comes byte by byte than twice its bytes", () => {
    const stream = new PassThrough();
    const end = new CallEnd(stream, 1_000_000);
    stream.emit("data", Buffer.from('{"result":200000}\n'));
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const held = () => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = held();
    for (let count = 0; count < 199_999; count++) stream.emit("data", Buffer.from("x"));
    // As pieces, each would have some hundred bytes of its own.
    expect(held() - before).toBeLessThan(5_000_000);
    stream.emit("data", Buffer.from("x"));
    expect(end.result).toHaveLength(200_000);
  });

  test.for([
    ["nothing", [], undefined],
    ["a part of a line", ['{"resu'], undefined],
    ["a part of the result", [given.slice(0, -1)], undefined],
    ["that it is done without a result", [done], undefined],
    ["another line", ['{"result":"7"}\n', done], undefined],
    ["a result beyond any bound", ['{"result":999999999}\n', done], undefined],
    ["a line without an end", ["x".repeat(5000), done], undefined],
    ["no end of its result", [given, '{"done":tru'], result],
    ["another end", [given, "x".repeat(5000), done], result],
    ["more than its end", [given, `${done}more`], result],
  ] as const)("is not done by %s", async ([, pieces, left]) => {
    expect(await ended(pieces)).toEqual({ result: left, isDone: false });
  });
});
