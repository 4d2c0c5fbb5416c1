/**
 * A soak of some seconds, by a real worker in a process of its own.
 *
 * @module-tag full
 */
import { expect, test } from "vitest";
import { measureSoak } from "../../../bench/soak/run.ts";

const seconds = 6;

test("a soak answers its calls and looks at the worker every second", async () => {
  const soak = await measureSoak({ minutes: seconds / 60, callsPerSecond: 5, broker: "dev" });
  expect(soak.errors).toEqual({});
  expect(soak.missed).toBe(0);
  expect(soak.latencies.count).toBeGreaterThan(10);
  expect(soak.latencies.count).toBe(soak.lateness.count);
  expect(Object.keys(soak.byKind)).toContain("artifact");
  expect(soak.points.length).toBeGreaterThanOrEqual(seconds - 2);
  for (const point of soak.points) {
    expect(point.memoryBytes).toBeGreaterThan(2 ** 20);
    expect(point.descriptors).toBeGreaterThan(10);
    expect(point.resources).toBeGreaterThan(0);
  }
  const { atSeconds } = soak.points.at(-1)!;
  expect(atSeconds).toBeGreaterThan(seconds - 2);
}, 120_000);
