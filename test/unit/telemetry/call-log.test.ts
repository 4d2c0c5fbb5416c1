/**
 * The log of a call: what its lines have, and that a call makes no child of pino.
 */
import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { CallLog } from "../../../worker/telemetry/call-log.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

const secret = "hunter2-must-not-be-seen";

/** A logger, its lines, and how many children it has had. */
function recording(level: string) {
  const lines: unknown[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()));
      done();
    },
  });
  const made = { children: 0 };
  const options = {
    ...{ level, base: null, timestamp: false },
    redact: ["token"],
    onChild: () => void made.children++,
  };
  return { log: pino(options, destination), lines, made };
}

const levels = ["debug", "info", "warn", "error", "fatal"] as const;

test.each(levels)("a line at %s has the facts of the call and its own", (level) => {
  const { log, lines, made } = recording("debug");
  const ofCall = new CallLog(log, { id: "c1", token: "secret" });
  ofCall[level]({ count: 2 }, "done");
  ofCall[level]({ count: 3 }, "done again");
  const line = { level: log.levels.values[level], id: "c1", token: "[Redacted]" };
  expect(lines).toEqual([
    { ...line, count: 2, msg: "done" },
    { ...line, count: 3, msg: "done again" },
  ]);
  expect(made.children).toBe(0);
});

test.each(levels)("a line at %s is left out where the log is silent", (level) => {
  const { log, lines } = recording("silent");
  const ofCall = new CallLog(new CallLog(log, { traceId: "t" }), { id: "c1" });
  ofCall[level]({}, "done");
  expect(ofCall.isLevelEnabled(level)).toBe(false);
  expect(lines).toEqual([]);
});

test("no secret of the call or the line reaches the log", { tags: "promise-R7" }, () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger("debug", destination);
  const ofCall = new CallLog(log, { id: "c1", token: secret, params: { args: secret } });
  ofCall.info({ tool_config: secret, request: { invocation: { secret } } }, "received");
  ofCall.child({ call: { password: secret } }).info({ env: { key: secret } }, "said");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { id: "c1", token: "[redacted]", tool_config: "[redacted]" },
    { id: "c1", call: { password: "[redacted]" } },
  ]);
  expect(lines.join("")).not.toContain(secret);
});

test("a line below the level is left out beside one that is not", () => {
  const { log, lines } = recording("warn");
  const ofCall = new CallLog(log, { id: "c1" });
  ofCall.warn({}, "slow");
  ofCall.info({}, "done");
  expect(lines).toEqual([{ level: 40, id: "c1", msg: "slow" }]);
});

test("a log in a log, or its child, has the facts of all", () => {
  const { log, lines } = recording("info");
  const traced = new CallLog(log, { traceId: "t" });
  new CallLog(traced, { id: "c1" }).info({}, "received");
  traced.child({ part: "p" }, { level: "warn" }).info({}, "left out");
  traced.child({ part: "p" }).info({}, "said");
  expect(lines).toEqual([
    { level: 30, traceId: "t", id: "c1", msg: "received" },
    { level: 30, traceId: "t", part: "p", msg: "said" },
  ]);
});
