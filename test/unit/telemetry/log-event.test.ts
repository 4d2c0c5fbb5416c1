/**
 * The events of the log: how they are logged, and that the worker logs nothing else.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { events } from "../../../worker/telemetry/events.ts";
import type { LogEvent } from "../../../worker/telemetry/events/event.ts";
import { type EventLog, logEvent } from "../../../worker/telemetry/log-event.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

const root = join(import.meta.dirname, "../../..");

/** What one line of the log has. */
function lineOf(write: (log: EventLog) => void): Record<string, unknown> {
  const lines: string[] = [];
  write(createLogger("debug", { write: (line) => void lines.push(line) }));
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0]!) as Record<string, unknown>;
}

describe("an event of the log", () => {
  test("has its name, its level, its sentence and its facts", () => {
    expect(
      lineOf((log) => logEvent(log, "tool.not_served", { tool: "echo", reason: "not there" })),
    ).toEqual({
      level: "warn",
      time: expect.any(String),
      event: "tool.not_served",
      tool: "echo",
      reason: "not there",
      msg: "tool not served",
    });
  });

  test("needs no facts, and has what its logger always says", () => {
    const log = createLogger("info", { write: (line) => void lines.push(line) });
    const lines: string[] = [];
    logEvent(log.child({ taskId: "t1" }), "call.received");
    expect(JSON.parse(lines.join(""))).toMatchObject({ event: "call.received", taskId: "t1" });
  });

  test("takes an error as a logger does", () => {
    const line = lineOf((log) =>
      logEvent(log, "mark.read_failed", { err: new Error("no such disk") }),
    );
    expect(line).toMatchObject({ err: { type: "Error", message: "no such disk" } });
  });

  test("has the facts that the catalogue requires and allows, and goes to a log of its level", () => {
    const log: EventLog<"warn" | "fatal"> = { warn: () => {}, fatal: () => {} };
    const facts = { tool: "echo", reason: "not there", reasons: "many" };
    // @ts-expect-error "reasons" is no fact of it, nor would be in a literal
    logEvent(log, "tool.not_served", facts);
    // @ts-expect-error an event without facts
    logEvent(log, "artifacts.in_memory", { path: "x" });
    // @ts-expect-error a fact that an addition to other facts brings
    logEvent(log, "tool.not_served", { ...facts, tool: "echo" });
    // @ts-expect-error "reason" is required
    logEvent(log, "tool.not_served", { tool: "echo" });
    // @ts-expect-error "tool" and "reason" are required
    logEvent(log, "tool.not_served");
    // @ts-expect-error "tool" is text
    logEvent(log, "tool.not_served", { tool: 1, reason: "not there" });
    // @ts-expect-error it is logged at info
    expect(() => logEvent(log, "call.received")).toThrow(TypeError);
    logEvent(log, "worker.failed");
    logEvent(log, "worker.failed", { reason: "the broker refuses the worker" });
  });
});

describe("the catalogue of events", () => {
  const entries: readonly (readonly [string, LogEvent])[] = Object.entries(events);

  test("names them in dotted snake case, and tells them apart by their sentences", () => {
    for (const [name] of entries) expect(name).toMatch(/^[a-z]+(?:_[a-z]+)*\.[a-z]+(?:_[a-z]+)*$/);
    const messages = entries.map(([, { message }]) => message);
    expect(new Set(messages).size).toBe(messages.length);
  });

  test("says what to do of every error", () => {
    const silent = entries.filter(
      ([, { level, action }]) => (level === "error" || level === "fatal") && action === undefined,
    );
    expect(silent).toEqual([]);
  });

  test("has facts that are in no other's way", () => {
    const taken = new Set(["event", "level", "time", "msg", "taskId"]);
    for (const [name, { facts }] of entries) {
      const wrong = Object.keys(facts).filter((fact) => taken.has(fact));
      expect({ name, wrong }).toEqual({ name, wrong: [] });
    }
  });

  // What writes the events, and what hands them on.
  const others = ["worker/telemetry/log-event.ts", "worker/telemetry/call-log.ts"];
  const sources = globSync("worker/**/*.ts", { cwd: root })
    .filter((path) => !others.includes(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

  test("has what the worker logs, and nothing that it does not log", () => {
    const logged = sources.flatMap(({ text }) =>
      [...text.matchAll(/\blogEvent\(\s*[^,]+,\s*("[^"]*")?/g)].map(([call, name]) =>
        name === undefined ? call : (JSON.parse(name) as string),
      ),
    );
    expect([...new Set(logged)].sort()).toEqual(Object.keys(events).sort());
  });

  test("is the only way into the log", () => {
    const direct = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/\blog(?:ger)?(?:\.(?:trace|debug|info|warn|error|fatal)\b|\[).*/gi)].map(
        ([call]) => `${path}: ${call}`,
      ),
    );
    expect(direct).toEqual([]);
  });
});
