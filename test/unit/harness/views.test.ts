/**
 * What is made readable: a worker's log, and the output of tools.
 */
import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { showLogLine } from "../../../harness/log-view.ts";
import { Screen } from "../../../harness/screen.ts";
import { OutputView } from "../../../harness/tool/output-view.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

/** A screen without colours, and what is on it. */
function createScreen() {
  let text = "";
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  return { screen: new Screen(stream as unknown as NodeJS.WriteStream), text: () => text };
}

/** What one call of a logger looks like. */
function shown(write: (log: ReturnType<typeof createLogger>) => void): string {
  const { screen, text } = createScreen();
  write(createLogger("debug", { write: (line) => showLogLine(line.trimEnd(), screen) }));
  return text();
}

describe("a line of the log", () => {
  test("has the time, the level, the event, and facts as one writes them", () => {
    const text = shown((log) =>
      log.info({ tool: "echo", durationMs: 12, names: ["a"], path: "a b" }, "invocation finished"),
    );
    expect(text).toMatch(/^\d\d:\d\d:\d\d info {2}invocation finished /);
    expect(text).toContain(' tool=echo durationMs=12 names=["a"] path="a b"\n');
  });

  test("leaves out large facts and cuts long texts", () => {
    const text = shown((log) =>
      log.warn({ profiles: Array(99).fill("x"), why: "y".repeat(999) }, "e"),
    );
    expect(text).not.toContain("profiles");
    expect(text).toContain(`why=${JSON.stringify(`${"y".repeat(100)}…`)}`);
  });

  test("says what went wrong below, with the stack of an error", () => {
    const error = new Error("broken", { cause: new Error("the reason") });
    const warning = shown((log) => log.warn({ err: error }, "not so good"));
    expect(warning).toMatch(/not so good\n {4}broken.*the reason\n$/);
    const failure = shown((log) => log.error({ err: error }, "bad"));
    expect(failure).toMatch(/\n {4}Error: broken\n {8}at /);
  });

  test("that is none is shown as it is, but controls nothing", () => {
    const { screen, text } = createScreen();
    for (const line of ["SyntaxError: \u001b[2J", '{"no": "level"}', '"text"', ""]) {
      showLogLine(line, screen);
    }
    expect(text()).toBe('SyntaxError: \\u001b[2J\n{"no": "level"}\n"text"\n\n');
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
