/**
 * What is made readable: a worker's log, and the output of tools.
 */
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { DevLog } from "../../../harness/dev/dev-log.ts";
import { logEvent } from "../../../worker/telemetry/log-event.ts";
import { showLogLine } from "../../../worker/telemetry/pretty-log.ts";
import type { Context } from "../../../harness/context.ts";
import { statusPrinter } from "../../../harness/invoke/answer.ts";
import { Screen } from "../../../harness/invoke/screen.ts";
import { OutputView } from "../../../harness/invoke/output-view.ts";
import { type Logger, createLogger } from "../../../worker/telemetry/logger.ts";

/** A screen without colours, and what is on it. */
function createScreen() {
  let text = "";
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  return { screen: new Screen(stream), text: () => text };
}

const id = "80c60c44-0d4b-4d98-b46f-ff2fc91bdd64";

/** What one call of a logger looks like. */
function shown(write: (log: Logger) => void): string {
  const { screen, text } = createScreen();
  write(createLogger("debug", { write: (line) => showLogLine(line.trimEnd(), screen) }));
  return text();
}

test("a status shows its level and fields, or its percentage", () => {
  const { screen, text } = createScreen();
  const print = statusPrinter({ err: screen } as Context);
  print("Counting");
  print("Reading (1 of 3)", { progress: { done: 1, total: 3, message: "Reading" } });
  print("4 of 3", { progress: { done: 4, total: 3 } });
  print("0 of 0", { progress: { done: 0, total: 0 } });
  const fields = { page: 2, name: "a\u001b b" };
  print("Warning: …", { log: { level: "warning", text: "slow\u001b", fields } });
  expect(text().split("\n")).toEqual([
    "status: Counting",
    "status: Reading (1 of 3) 33 %",
    "status: 4 of 3",
    "status: 0 of 0",
    expect.stringMatching(/^warning: slow\S* page=2 name="a\S+ b"$/),
    "",
  ]);
  expect(text()).not.toContain("\u001b");
});

describe("a line of the log", () => {
  test("has the time, the level, the message, and facts as one writes them", () => {
    const text = shown((log) =>
      log.info({ tool: "echo", durationMs: 12, names: ["a"], path: "a b" }, "invocation finished"),
    );
    expect(text).toMatch(/^\d\d:\d\d:\d\d info {2}invocation finished /);
    expect(text).toContain(' tool=echo durationMs=12 names=["a"] path="a b"\n');
  });

  test("has the sentence of an event and not its name", () => {
    const text = shown((log) => logEvent(log, "module.compiled", { module: "a.ts" }));
    expect(text).toMatch(/^\S+ debug module compiled ahead module=a\.ts\n$/);
  });

  test("leaves no fact of a warning out, however long, and of other lines large structures only", () => {
    const facts = { profiles: Array(99).fill("x"), why: "y".repeat(999), empty: {} };
    const warning = shown((log) => log.warn(facts, "e"));
    expect(warning).toMatch(/^\S+ warn {2}e\n {4}profiles: \["x".*\]\n {4}why: y{999}\n$/);
    const info = shown((log) => log.info(facts, "e"));
    expect(info).toMatch(/^\S+ info {2}e\n {4}why: y{999}\n$/);
    const reason = { reason: 'package "x" is not installed', tool: "t" };
    expect(shown((log) => log.warn(reason, "tool not served"))).toMatch(
      /tool not served tool=t\n {4}reason: package "x" is not installed\n$/,
    );
  });

  test("has no more of a hash or an id than tells it from others", () => {
    const text = shown((log) => log.info({ revision: "0123456789abcdef".repeat(4), id }, "e"));
    expect(text).toMatch(/ e revision=01234567 id=80c60c44\n$/);
  });

  test("has the id of a request only where it is not that of the task", () => {
    const text = shown((log) => {
      log.info({ id: "7", taskId: "7" }, "same");
      log.info({ id: "8", taskId: "7" }, "other");
    });
    expect(text).toMatch(/same taskId=7\n.*other id=8 taskId=7\n$/);
  });

  test("says what went wrong below, and shows no stack of the worker", () => {
    const error = new Error("broken", { cause: new Error("the reason") });
    for (const level of ["warn", "error"] as const) {
      const text = shown((log) => log[level]({ err: error }, "not so good"));
      expect(text).toMatch(/not so good\n {4}broken.*the reason\n$/);
    }
  });

  test("that is none is shown as it is, but controls nothing", () => {
    const { screen, text } = createScreen();
    for (const line of ["SyntaxError: \u001b[2J", '{"no": "level"}', '"text"', ""]) {
      showLogLine(line, screen);
    }
    expect(text()).toBe('SyntaxError: \\u001b[2J\n{"no": "level"}\n"text"\n\n');
  });
});

describe("the log of harness dev", () => {
  const dirs = {
    pythonDir: join(process.cwd(), "my tools"),
    nodeDir: "/elsewhere/node",
    executableDir: "/elsewhere/programs",
  };

  /** What is shown of a call of a logger whose worker was told the level that we need. */
  function shownAt(level: string | undefined, write: (log: Logger) => void): string {
    const { screen, text } = createScreen();
    const view = new DevLog({ level, dirs, screen });
    const workerLevel = view.workerLevel as "debug";
    write(createLogger(workerLevel, { write: (line) => view.take(line.trimEnd()) }));
    return text();
  }

  test("has what a tool prints at every level, and what it says of its failure", () => {
    const write = (log: Logger): void => {
      const ofTool = log.child({ tool: "words" });
      const print = (stream: string, text: string): void =>
        logEvent(ofTool, "tool.output", { stream, text });
      print("stdout", "\u001b[2Jin /tools/python/x");
      print("stderr", '  File "/tools/python/a.py", line 1');
      print("stderr", "at f (file:///tools/node/a.ts:1:2)");
      logEvent(ofTool, "tool.status", { text: "Reading (3 of 10)" });
      logEvent(log, "call.failed", { durationMs: 5, statuses: {}, code: "TOOL_ERROR" });
      logEvent(log, "call.failure_cause", { err: new Error("No text") });
      log.debug({}, "something else");
    };
    const output = [
      "stdout words: \\u001b[2Jin /tools/python/x",
      'stderr words:   File "my tools/a.py", line 1',
      "stderr words: at f (/elsewhere/node/a.ts:1:2)",
      "status words: Reading (3 of 10)",
    ];
    const withoutTimes = (text: string): string => text.replaceAll(/^\d\d:\d\d:\d\d /gm, "");
    for (const level of [undefined, "info"]) {
      expect(withoutTimes(shownAt(level, write)).split("\n")).toEqual([
        ...output,
        "warn  invocation failed durationMs=5 code=TOOL_ERROR",
        "    No text",
        "",
      ]);
    }
    expect(withoutTimes(shownAt("silent", write))).toContain(output.join("\n"));
    expect(shownAt("silent", write)).not.toContain("invocation failed");
  });

  test("shows everything of every line at debug", () => {
    const text = shownAt("debug", (log) =>
      log.debug({ all: Array(99).fill("x"), err: new Error("broken") }, "something else"),
    );
    expect(text).toMatch(/debug something else\n {4}all: \["x".*\]\n {4}Error: broken\n {8}at /);
  });

  test("leaves it to the worker to refuse a level that there is not", () => {
    const { screen } = createScreen();
    expect(new DevLog({ level: "loud", dirs, screen }).workerLevel).toBe("loud");
    expect(new DevLog({ level: "trace", dirs, screen }).workerLevel).toBe("trace");
  });
});

describe("the output of a tool", () => {
  test("is shown by lines, whatever pieces it comes in", () => {
    const { screen, text } = createScreen();
    const view = new OutputView(screen);
    const bytes = Buffer.from("é1\r\n2\n\n3");
    for (const byte of bytes) view.take("stdout", Uint8Array.of(byte));
    view.take("stderr", Buffer.from("other\nrest"));
    expect(text()).toBe("stdout: é1\nstdout: 2\nstdout: \nstderr: other\n");
    view.finish();
    view.finish();
    expect(text()).toContain("stdout: 3\nstderr: rest\n");
    expect(text().match(/rest/g)).toHaveLength(1);
  });

  test("does not pile up where a line never ends", () => {
    const { screen, text } = createScreen();
    const view = new OutputView(screen);
    view.take("stdout", Buffer.alloc(20_000, "x"));
    expect(
      text()
        .split("\n")
        .map((line) => line.length),
    ).toEqual([8200, 8200, 0]);
  });
});
