/**
 * Status updates: lines in a named pipe, whole and in order whoever writes them.
 */
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";
import { afterAll, describe, expect, test } from "vitest";
import {
  forkRunners,
  removeWorkDirs,
  requiresWorkerByPipe,
  runTool,
  statuses,
} from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

const maxLineBytes = 4096;

function send(texts: readonly unknown[], isStatusRead = true) {
  return runTool("context_tools", "statuses", { args: { texts }, isStatusRead });
}

test("each status is one line of JSON, in order", async () => {
  const run = await send(["one", "zwei €", 'quo"te\nline', "", 7]);
  expect(run.statusLines[0]).toBe('{"status": "one"}');
  expect(statuses(run)).toEqual(["one", "zwei €", 'quo"te\nline', "", "7"]);
  expect(run.document).toMatchObject({ result: { sent: [true, true, true, true, true] } });
});

test("nobody reading from the start means that the worker is gone: nothing of the tool runs", async (context) => {
  requiresWorkerByPipe(context);
  const run = await send(["one", "two"], false);
  expect(run.exitCode).toBe(1);
  expect(run.stderr).toContain("the worker is gone");
  expect(run.document).toBeUndefined();
});

test.for([null, "/nowhere/status.pipe"])(
  "with %j as the pipe, the tool is told False",
  async (pipe) => {
    const run = await runTool("context_tools", "statuses", {
      args: { texts: ["one"] },
      members: { status_pipe: pipe },
    });
    expect(run.document).toMatchObject({ result: { sent: [false] } });
  },
);

describe("a status that does not fit into a line is shortened", () => {
  const room = maxLineBytes - '{"status": ""}\n'.length;

  test.for<[what: string, text: string, sent: string]>([
    ["that just fits stays whole", "a".repeat(room), "a".repeat(room)],
    ["of ASCII", "a".repeat(room + 1), "a".repeat(room - 3) + "…"],
    ["of characters of four bytes", "😀".repeat(2000), "😀".repeat(1019) + "…"],
    ["of characters that are escaped", "\n".repeat(5000), "\n".repeat(2039) + "…"],
    ["of ten megabytes", "x".repeat(10_000_000), "x".repeat(room - 3) + "…"],
  ])("one %s", async ([, text, sent]) => {
    const run = await send([text]);
    expect(statuses(run)).toEqual([sent]);
    expect(Buffer.byteLength(run.statusLines[0]!) + 1).toBeLessThanOrEqual(maxLineBytes);
  });

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
  const run = await send(["a\ud800b"]);
  expect(run.statusLines).toEqual(['{"status": "a\\ud800b"}']);
});

test("lines of several processes never mix", async () => {
  const [processes, count, size] = [4, 200, 3000];
  const run = await runTool("context_tools", "statuses_of_processes", {
    args: { processes, count, size },
  });
  const counts = new Map<string, number>();
  for (const text of statuses(run)) counts.set(text, (counts.get(text) ?? 0) + 1);
  expect(counts).toEqual(
    new Map(["a", "b", "c", "d"].map((letter) => [letter.repeat(size), count])),
  );
});

test("a process that is spawned, not forked, can send too", async () => {
  const run = await runTool("context_tools", "statuses_of_spawned_process");
  expect(run.document).toMatchObject({ result: { sent: true } });
  expect(statuses(run)).toEqual(["from a spawned process"]);
});

test("two thousand statuses cost a tool not much more than as many writes, and no waiting", async () => {
  // They fit into the pipe, so that it does not matter when they are read.
  const count = 2_000;
  const run = await runTool("context_tools", "many_statuses", { args: { count } });
  const { sent, waited, writes_worth } = run.document?.["result"] as Record<string, number>;
  expect(sent).toBe(count);
  expect(statuses(run)).toEqual(Array.from({ length: count }, (_, index) => `working ${index}`));
  expect(waited).toBeLessThan(count / 10);
  expect(writes_worth).toBeLessThan(50);
});
