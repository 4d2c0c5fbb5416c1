/**
 * The log of a backend, as its user's logger gets it.
 */
import { expect, test } from "vitest";
import type { RuntimeLogger } from "../../../worker/runtime/api/runtime.ts";
import { backendLog } from "../../../worker/wiring/runtime/log.ts";

test("a logger gets messages and facts by their level, and no secrets", () => {
  const told: unknown[] = [];
  const tell = (level: string) => (message: string, facts: Readonly<Record<string, unknown>>) =>
    void told.push([level, message, { ...facts, time: undefined }]);
  const logger: RuntimeLogger = { info: tell("info"), warn: tell("warn"), error: tell("error") };
  const log = backendLog(logger, "error");
  log.debug({}, "too much");
  log.child({ part: "pool" }).info({ count: 2, token: "secret" }, "made");
  log.warn({}, "slow");
  log.fatal({ err: new Error("it broke") }, "ended");
  expect(told).toEqual([
    ["info", "made", { part: "pool", count: 2, token: "[redacted]" }],
    ["warn", "slow", {}],
    ["error", "ended", { err: expect.objectContaining({ message: "it broke" }) as unknown }],
  ]);
});

test("a logger that throws changes nothing", () => {
  const fail = (): never => {
    throw new Error("full");
  };
  const log = backendLog({ info: fail, warn: fail, error: fail }, "warn");
  expect(() => log.warn({}, "slow")).not.toThrow();
});
