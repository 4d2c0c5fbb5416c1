import { expect, test } from "vitest";
import {
  keptFor,
  maxKeptNames,
  maxKeptSeconds,
  minKeptSeconds,
} from "../../../worker/egress/resolve-cache.ts";

const never = AbortSignal.any([]);

/** Addresses that count the questions: the first is 93.184.0.1. */
function kept(ttlSeconds: number) {
  let [nowMs, asked] = [0, 0];
  const lookUp = (name: string) =>
    name === "unknown.example"
      ? Promise.reject(new Error(`no ${++asked}`))
      : Promise.resolve({ addresses: [`93.184.0.${++asked}`], ttlSeconds });
  const resolve = keptFor(lookUp, { monotonicMs: () => nowMs });
  return {
    ask: (name = "a.example") => resolve(name, never),
    later: (seconds: number) => (nowMs += seconds * 1_000),
    asked: () => asked,
  };
}

test.each([
  [60, 60],
  [0, minKeptSeconds],
  [86_400, maxKeptSeconds],
])("addresses with %i seconds to live are kept for %i", async (ttlSeconds, seconds) => {
  const names = kept(ttlSeconds);
  expect(await names.ask()).toEqual(["93.184.0.1"]);
  names.later(seconds - 0.001);
  expect(await names.ask()).toEqual(["93.184.0.1"]);
  names.later(0.001);
  expect(await names.ask()).toEqual(["93.184.0.2"]);
});

test("another name has addresses of its own, and a failure is not kept", async () => {
  const names = kept(60);
  expect(await names.ask()).not.toEqual(await names.ask("b.example"));
  await expect(names.ask("unknown.example")).rejects.toThrow("no 3");
  await expect(names.ask("unknown.example")).rejects.toThrow("no 4");
});

test("so many names are kept, and the oldest is asked for again", async () => {
  const names = kept(60);
  for (let index = 0; index <= maxKeptNames; index++) await names.ask(`h${index}.example`);
  await names.ask(`h${maxKeptNames}.example`);
  expect(names.asked()).toBe(maxKeptNames + 1);
  await names.ask("h0.example");
  expect(names.asked()).toBe(maxKeptNames + 2);
});
