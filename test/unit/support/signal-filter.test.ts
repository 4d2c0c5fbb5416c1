/**
 * Signals that come twice.
 */
import { expect, test } from "vitest";
import { createSignalFilter, repeatMs } from "../../../worker/support/signal-filter.ts";

test("a signal that comes twice at once is one; another one, or the same one later, is news", () => {
  let nowMs = 0;
  const isNews = createSignalFilter({ monotonicMs: () => nowMs });
  expect(isNews("SIGINT")).toBe(true);
  nowMs += repeatMs - 1;
  expect(isNews("SIGINT")).toBe(false);
  expect(isNews("SIGTERM")).toBe(true);
  nowMs += repeatMs;
  expect(isNews("SIGINT")).toBe(true);
});
