/**
 * Status updates: lines in a named pipe, whole and in order, without holding up the tool.
 */
import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { RunOptions, ToolRun } from "../tool-runner/run-tool.ts";
import {
  removeWorkDirs,
  requiresResultFile,
  runBody,
  statuses,
  toolsDirectory,
} from "./run-node-tool.ts";

afterAll(removeWorkDirs);

const maxLineBytes = 4096;

function send(texts: readonly unknown[], options: RunOptions = {}): Promise<ToolRun> {
  return runBody(
    "const sent = []; for (const text of args.texts) sent.push(await ctx.sendStatus(text)); return { sent }",
    { ...options, args: { texts } },
  );
}

test("each status is one line of JSON, in order", async () => {
  const run = await send(["one", "zwei €", 'quo"te\nline', "", 7, null]);
  expect(run.statusLines[0]).toBe('{"status": "one"}');
  expect(statuses(run)).toEqual(["one", "zwei €", 'quo"te\nline', "", "7", "null"]);
  expect(run.document).toMatchObject({ result: { sent: [true, true, true, true, true, true] } });
});

test("nobody reading from the start means that the worker is gone: nothing of the tool runs", async () => {
  const run = await send(["one"], { isStatusRead: false });
  expect(run).toMatchObject({ exitCode: 1, document: undefined });
  expect(run.stderr).toBe("tool_runner: nobody reads the status pipe, so the worker is gone\n");
});

test.for([null, "/nowhere/status.pipe"])(
  "with %j as the pipe, the tool is told false",
  async (pipe) => {
    const run = await send(["one"], { members: { status_pipe: pipe } });
    expect(run.document).toMatchObject({ result: { sent: [false] } });
  },
);

test("what has no text is told false, and never rejects", async () => {
  const run = await runBody("return { sent: await ctx.sendStatus(Object.create(null)) }");
  expect(run.document).toMatchObject({ result: { sent: false } });
});

describe("a status that does not fit into a line is shortened", () => {
  const room = maxLineBytes - '{"status": ""}\n'.length;

  type LongCase = [what: string, text: string, sent: string];

  const usualLong: readonly LongCase[] = [
    ["that just fits stays whole", "a".repeat(room), "a".repeat(room)],
    ["of characters of four bytes", "😀".repeat(2000), "😀".repeat(1019) + "…"],
  ];
  const otherLong: readonly LongCase[] = [
    ["of ASCII", "a".repeat(room + 1), "a".repeat(room - 3) + "…"],
    ["of characters that are escaped", "\n".repeat(5000), "\n".repeat(2039) + "…"],
    ["of a megabyte", "x".repeat(1_000_000), "x".repeat(room - 3) + "…"],
  ];
  const showLong = async ([, text, sent]: LongCase) => {
    const run = await send([text]);
    expect(statuses(run)).toEqual([sent]);
    expect(Buffer.byteLength(run.statusLines[0]!) + 1).toBeLessThanOrEqual(maxLineBytes);
  };

  test.for(usualLong)("one %s", showLong);
  test.for(otherLong)("one %s", { tags: "full" }, showLong);

  const manyTexts = fc.array(fc.string({ unit: anyCharacter, maxLength: 9000 }), { minLength: 20 });

  property.prop([manyTexts], { numRuns: 3 })(
    "any text arrives, or a beginning of it",
    async (texts) => {
      const run = await send(texts);
      const arrived = statuses(run);
      expect(arrived).toHaveLength(texts.length);
      for (const [index, line] of run.statusLines.entries()) {
        expect(Buffer.byteLength(line) + 1).toBeLessThanOrEqual(maxLineBytes);
        const [sent, got] = [texts[index]!, arrived[index]!];
        if (got !== sent) expect(sent.startsWith(got.slice(0, -1)) && got.endsWith("…")).toBe(true);
      }
    },
  );
});

test("a lone surrogate arrives as an escape", async () => {
  expect((await send(["a\ud800b"])).statusLines).toEqual(['{"status": "a\\ud800b"}']);
});

test.for<[what: string, ending: string]>([
  ["an answer", "return 1"],
  ["an error", "throw new Error('x')"],
])("statuses that nobody awaited come before %s", async ([, ending]) => {
  const body = `for (let n = 0; n < 500; n += 1) ctx.sendStatus(n + " " + "x".repeat(3000)); ${ending}`;
  const run = await runBody(body);
  expect(statuses(run).map((text) => Number.parseInt(text))).toEqual(
    Array.from({ length: 500 }, (_, n) => n),
  );
});

test("a status goes out before the tool keeps its thread busy", async () => {
  const run = await runBody(`
    ctx.sendStatus("first");
    ctx.sendStatus("second");
    process.kill(process.pid, "SIGKILL");`);
  expect(statuses(run)).toEqual(["first", "second"]);
});

test("two thousand statuses cost a tool not much more than as many writes, and no waiting", async () => {
  // They fit into the pipe, so that it does not matter when they are read.
  const count = 2_000;
  const run = await runBody(`
    const { closeSync, openSync, writeSync } = await import("node:fs");
    const cost = async (work) => {
      const before = process.threadCpuUsage();
      for (let n = 0; n < ${count}; n += 1) await work("working " + n);
      const { user, system } = process.threadCpuUsage(before);
      return user + system;
    };
    let hasTurned = false;
    const turn = setImmediate(() => { hasTurned = true });
    const status = await cost((text) => ctx.sendStatus(text));
    clearImmediate(turn);
    const nowhere = openSync("/dev/null", "w");
    const write = await cost(async (text) => writeSync(nowhere, text));
    closeSync(nowhere);
    return { hasTurned, writesWorth: status / write }`);
  expect(statuses(run)).toEqual(Array.from({ length: count }, (_, n) => `working ${n}`));
  expect(run.document?.["result"]).toEqual({
    hasTurned: false,
    writesWorth: expect.toSatisfy((worth: number) => worth < 50),
  });
});

describe("while the reader is behind", () => {
  const lines = 100;
  /** Sends more than a pipe holds, and says how the event loop fares. */
  const sending = `
    const fs = await import("node:fs");
    const sent = Array.from({ length: ${lines} }, (_, n) => ctx.sendStatus(n + " " + "x".repeat(4000)));
    for (let n = 0; n < 10; n += 1) await new Promise((resolve) => setTimeout(resolve, 5));
    fs.writeFileSync("output/went-on", "");`;

  /**
   * Runs a tool whose pipe is read once the tool has gone on; calls `onRead` with the texts after
   * each reading.
   */
  async function runSlowly(
    body: string,
    onRead: (texts: readonly string[], wasAnswered: boolean) => void,
  ) {
    const pipe = join(await toolsDirectory({}), "slow.pipe");
    execFileSync("mkfifo", [pipe]);
    const descriptor = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    onTestFinished(() => closeSync(descriptor));
    let workDir = "";
    const running = runBody(body, {
      members: { status_pipe: pipe },
      onStart: (path) => {
        workDir = path;
      },
    });
    await vi.waitFor(() => expect(existsSync(join(workDir, "output/went-on"))).toBe(true), 30_000);

    let received = "";
    const drain = (): void => {
      const wasAnswered = existsSync(join(workDir, "result.json"));
      const chunk = Buffer.alloc(1_000_000);
      try {
        received += chunk.toString("utf8", 0, readSync(descriptor, chunk));
      } catch {
        // Nothing there at the moment.
      }
      onRead(received.split("\n").slice(0, -1), wasAnswered);
    };
    const timer = setInterval(drain, 2);
    const run = await running.finally(() => clearInterval(timer));
    drain();
    return run;
  }

  test("the tool goes on, a promise waits, and nothing is lost", async () => {
    let received: readonly string[] = [];
    const run = await runSlowly(`${sending} return { sent: await Promise.all(sent) }`, (texts) => {
      received = texts;
    });
    expect(run.document).toMatchObject({
      result: { sent: Array.from({ length: lines }, () => true) },
    });
    expect(received.map((line) => /\d+/.exec(line)?.[0])).toEqual(
      Array.from({ length: lines }, (_, n) => `${n}`),
    );
  });

  test("the answer waits, too, for what the tool has sent", async (context) => {
    requiresResultFile(context);
    const receivedBeforeAnswer: number[] = [];
    const run = await runSlowly(`${sending} return { ok: true }`, (texts, wasAnswered) => {
      if (wasAnswered) receivedBeforeAnswer.push(texts.length);
    });
    expect(run.document).toMatchObject({ result: { ok: true } });
    // What one reading finds after the answer is all there was in the pipe.
    expect(new Set(receivedBeforeAnswer)).toEqual(new Set([lines]));
  });
});
