/**
 * What the log says, and what it never says.
 */
import { Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { createLogger, logDestination, redactedPaths } from "../../../worker/telemetry/logger.ts";

const secret = "hunter2-must-not-be-seen";

/** A logger and what it has written. */
function recordingLogger(level: Parameters<typeof createLogger>[0] = "trace") {
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  return {
    log: createLogger(level, destination),
    lines,
    only: () => {
      expect(lines).toHaveLength(1);
      return JSON.parse(lines[0]!) as Record<string, unknown>;
    },
  };
}

/** An object with `value` at a path such as `*.password`. */
function at(path: string, value: unknown): Record<string, unknown> {
  return path
    .split(".")
    .reverse()
    .reduce<unknown>((inner, name) => ({ [name === "*" ? "any" : name]: inner }), value) as Record<
    string,
    unknown
  >;
}

const names = ["password", "token", "secret", "authToken", "toolConfig", "tool_config"];
const places = [
  ...names.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
  ...["args", "params.args", "invocation.args", "env"],
  ...["headers.authorization", "properties.authToken"],
];

describe("a secret", () => {
  test.each(places)("at %s does not reach the log", (place) => {
    const { log, lines, only } = recordingLogger();
    log.info(at(place, secret), "with a secret");
    expect(lines.join("")).not.toContain(secret);
    expect(JSON.stringify(only())).toContain("[redacted]");
  });

  test.each(places)("inside an object at %s does not reach the log", (place) => {
    const { log, lines } = recordingLogger();
    log.error(at(place, { deep: { apiKey: secret }, list: [secret] }), "with a secret");
    expect(lines.join("")).not.toContain(secret);
  });

  const atAnyLevel = ["trace", "debug", "info", "warn", "error"] as const;
  test.each(atAnyLevel)("does not reach the log at level %s", { tags: "promise-R7" }, (level) => {
    const { log, lines } = recordingLogger();
    log[level]({ params: { tool_config: { key: secret }, args: { key: secret } } }, "request");
    expect(lines).toHaveLength(1);
    expect(lines.join("")).not.toContain(secret);
  });

  test("in what a child logger always says does not reach the log", () => {
    const { log, lines } = recordingLogger();
    log.child({ taskId: "t1", token: secret, call: { toolConfig: secret } }).info("started");
    expect(lines.join("")).not.toContain(secret);
    expect(lines.join("")).toContain('"taskId":"t1"');
  });

  test("that an error carries does not reach the log", () => {
    const { log, lines } = recordingLogger();
    log.warn({ err: Object.assign(new Error("refused"), { password: secret }) }, "connect failed");
    expect(lines.join("")).not.toContain(secret);
    expect(lines.join("")).toContain("refused");
  });

  test("is not taken out of the object that was logged", () => {
    const { log } = recordingLogger();
    const request = { params: { args: { query: "x" }, tool_config: { key: secret } } };
    log.info(request, "request");
    expect(request.params).toEqual({ args: { query: "x" }, tool_config: { key: secret } });
  });
});

describe("the list of what is left out", () => {
  test("is the one that is tested here", () => {
    expect(redactedPaths.toSorted()).toEqual(places.toSorted());
  });
});

describe("a line of the log", () => {
  test("is JSON with a time and a level that humans can read", () => {
    const { log, only } = recordingLogger();
    log.info({ taskId: "t1", durationMs: 12 }, "invocation finished");
    const line = only();
    expect(line).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
      taskId: "t1",
      durationMs: 12,
      msg: "invocation finished",
    });
  });

  test("keeps message, stack and cause of an error", () => {
    const { log, only } = recordingLogger();
    log.error({ err: new Error("outer", { cause: new Error("inner") }) }, "failed");
    expect(only()["err"]).toMatchObject({
      type: "Error",
      message: expect.stringContaining("outer") as unknown,
      stack: expect.stringContaining("inner") as unknown,
    });
  });

  test("is written at the level that was asked for and above", () => {
    const { log, lines } = recordingLogger("warn");
    log.info("not this");
    log.warn("this");
    log.error("and this");
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      "this",
      "and this",
    ]);
  });

  test("is not written at all by a silent log", () => {
    const { log, lines } = recordingLogger("silent");
    log.fatal("nobody hears");
    expect(lines).toEqual([]);
  });
});

describe("where the log goes", () => {
  /** Standard output that is a terminal or not, and what was written to it. */
  function output(isTTY: boolean) {
    let text = "";
    const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
      text += chunk.toString();
      done();
    };
    const stream = Object.assign(new Writable({ write }), { isTTY, fd: 1 });
    return { stream: stream as unknown as typeof process.stdout, text: () => text };
  }

  test.each([
    ["auto", true, true],
    ["auto", false, false],
    ["json", true, false],
    ["pretty", false, true],
  ] as const)(
    "with the format %s, a terminal: %j, is for people: %j",
    (format, isTTY, isPretty) => {
      const { stream, text } = output(isTTY);
      const destination = logDestination(stream, format, "info");
      if (!isPretty) return expect(destination).toBe(1);
      const log = createLogger("info", destination);
      log.child({ part: "broker" }).warn({ attempt: 3, token: secret }, "broker not reached");
      expect(stripVTControlCharacters(text())).toMatch(
        /^\d\d:\d\d:\d\d warn {2}broker not reached attempt=3 token=\S+\n$/,
      );
      expect(text()).not.toContain(secret);
    },
  );

  test("has the stack of an error for people at debug only", () => {
    for (const [level, hasStack] of [
      ["info", false],
      ["debug", true],
    ] as const) {
      const { stream, text } = output(false);
      createLogger(level, logDestination(stream, "pretty", level)).error(
        new Error("broken"),
        "bad",
      );
      expect(text()).toContain("    ");
      expect(text()).toContain("broken");
      expect(text().includes("\n        at ")).toBe(hasStack);
    }
  });
});
