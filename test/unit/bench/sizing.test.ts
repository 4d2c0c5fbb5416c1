/**
 * The model of workers, what it is fed with, and its report.
 */
import { describe, expect, test } from "vitest";
import { proportionalBytes } from "../../../bench/sizing/memory.ts";
import {
  type CallCosts,
  type Plant,
  idleSandboxes,
  machineFor,
  predict,
  slotsFor,
} from "../../../bench/sizing/model.ts";
import { sizingOptions } from "../../../bench/sizing/options.ts";
import { busySeconds, secondsOf } from "../../../bench/sizing/processor.ts";
import type { MeasuredSaturation } from "../../../bench/sizing/run.ts";
import { type SizingReport, formatServed, formatSizing } from "../../../bench/sizing/table.ts";

/** A tool that waits 100 ms, and takes 20 ms of processors, 4 of them for broker and caller. */
const costs: CallCosts = {
  ...{
    slotSeconds: 0.12,

    templateSeconds: 0,
    worker: 0.006,
    loop: 0.004,
    sandbox: 0.01,
  },
  ...{ broker: 0.002, client: 0.002, clientLoop: 0.001 },
};
const plant: Plant = { workers: 1, slots: 4, cores: 16, idleCores: 0, isShared: true };

describe("a prediction", () => {
  test("is bound by slots, which workers add", () => {
    const one = predict(costs, plant);
    expect(one.bound).toBe("slots");
    expect(one.callsPerSecond).toBeCloseTo(4 / 0.12, 0);
    expect(predict(costs, { ...plant, workers: 2 }).callsPerSecond).toBeCloseTo(8 / 0.12, 0);
  });

  test("is bound by processors that others and idle workers leave", () => {
    const many = { ...plant, workers: 4, slots: 40 };
    const { bound, callsPerSecond } = predict(costs, { ...many, cores: 2 });
    expect(bound).toBe("cores");
    expect(callsPerSecond).toBeCloseTo(100, 0);
    expect(predict(costs, { ...many, cores: 2, idleCores: 0.5 }).callsPerSecond).toBeCloseTo(75, 0);
    expect(predict(costs, { ...many, cores: 0.5 }).callsPerSecond).toBeCloseTo(25, 0);
    expect(predict(costs, { ...many, cores: 0.5, idleCores: 1 }).callsPerSecond).toBe(0);
    const apart = predict(costs, { ...many, cores: 2, isShared: false });
    expect(apart.callsPerSecond).toBeCloseTo(125, 0);
  });

  test("is bound by templates, which make one sandbox at a time", () => {
    const made = { ...costs, templateSeconds: 0.02 };
    const many = { ...plant, slots: 40 };
    const { bound, callsPerSecond } = predict(made, many);
    expect(bound).toBe("template");
    expect(callsPerSecond).toBeCloseTo(50, 0);
    expect(predict(made, { ...many, workers: 2 }).callsPerSecond).toBeCloseTo(100, 0);
  });

  test("is below both where templates and processors bind alike", () => {
    const made = { ...costs, slotSeconds: 0.02, templateSeconds: 0.01 };
    const { bounds, callsPerSecond } = predict(made, { ...plant, cores: 2 });
    expect(bounds.template).toBeCloseTo(bounds.cores);
    expect(callsPerSecond).toBeLessThan(0.95 * bounds.cores);
    expect(callsPerSecond).toBeGreaterThan(0.6 * bounds.cores);
  });

  test("is below both where event loops and slots bind alike", () => {
    const { bounds, callsPerSecond } = predict(costs, { ...plant, slots: 30 });
    expect(bounds.slots).toBeCloseTo(bounds["event loop"]);
    expect(callsPerSecond).toBeLessThan(0.95 * bounds.slots);
    expect(callsPerSecond).toBeGreaterThan(0.7 * bounds.slots);
  });

  test("is below both where slots and processors bind alike", () => {
    const { bounds, callsPerSecond } = predict(costs, { ...plant, slots: 12, cores: 2 });
    expect(bounds.slots).toBeCloseTo(bounds.cores);
    expect(callsPerSecond).toBeLessThan(0.95 * bounds.cores);
    expect(callsPerSecond).toBeGreaterThan(0.7 * bounds.cores);
  });

  test.each([
    ["event loop", { workers: 2, slots: 400, cores: 1_000 }, 500],
    ["client", { slots: 4_000, workers: 100, cores: 1_000, clients: 1 }, 1_000],
    ["broker", { slots: 4_000, cores: 1_000, workers: 100, brokerCores: 3 }, 1_500],
  ] as const)("is bound by the %s", (bound, part, rate) => {
    const prediction = predict(costs, { ...plant, ...part });
    expect(prediction.bound).toBe(bound);
    expect(prediction.callsPerSecond).toBeCloseTo(rate, 0);
  });

  test("is bound by memory that workers, templates and idle sandboxes leave", () => {
    const memory = {
      ...{ worker: 100, template: 20, idle: 4, running: 10 },
      ...{ bytes: 300, idleSandboxes: 5 },
    };
    const { bound, bounds } = predict(costs, { ...plant, slots: 20, memory });
    expect(bound).toBe("memory");
    // 300 - 120 - 20 leaves 16 of them.
    expect(bounds.memory).toBeCloseTo(16 / 0.12, 0);
    const none = { ...plant, memory: { ...memory, bytes: 100 } };
    expect(predict(costs, none).callsPerSecond).toBe(0);
  });
});

test("slots are enough for what else binds, and idle sandboxes for a refill", () => {
  const alone = { workers: 1, cores: 2, idleCores: 0, isShared: false };
  // 125 calls a second by 16 ms on two processors, for 0.12 s each, and a tenth more.
  expect(slotsFor(costs, alone)).toBe(17);
  expect(idleSandboxes(100, 0.05)).toBe(6);
});

describe("the least machine for a rate", () => {
  test("has cores for the calls and for idle workers, and workers for their event loops", () => {
    // 400 calls of 16 ms are 6.4 processors, and each of two event loops bears 250.
    expect(machineFor(400, costs, 0)).toMatchObject({ cores: 7, workers: 2 });
    expect(machineFor(400, costs, 0.75)).toMatchObject({ cores: 9, workers: 2 });
  });

  test("has workers for the templates, and slots by which it serves the rate", () => {
    const made = { ...costs, templateSeconds: 0.01 };
    const machine = machineFor(400, made, 0);
    expect(machine?.workers).toBeGreaterThan(4);
    const { callsPerSecond } = predict(made, { idleCores: 0, isShared: false, ...machine! });
    expect(callsPerSecond).toBeGreaterThanOrEqual(400);
  });

  test("is none where one call takes all processors", () => {
    expect(machineFor(400, { ...costs, sandbox: 10 }, 0)).toBeUndefined();
  });
});

test("processor time and memory are read from /proc", () => {
  const line = `7 (a (b) c) S ${"0 ".repeat(10)}150 50 900 900 20`;
  expect(secondsOf(line)).toBe(2);
  expect(busySeconds("cpu  100 200 300 9999 9999 10 20 70 5 5\ncpu0 1 2 3")).toBe(7);
  expect(proportionalBytes("Rss:    9 kB\nPss:    3 kB\nPss_Dirty: 1 kB\n")).toBe(3 * 1024);
  expect(proportionalBytes("")).toBe(0);
});

test("options are a broker by which workers share calls", () => {
  expect(sizingOptions({ sizing: false })).toBeUndefined();
  expect(sizingOptions({ sizing: true, broker: "solace" })).toEqual({ broker: "solace" });
  expect(() => sizingOptions({ sizing: true, broker: "dev" })).toThrow("--broker");
  expect(() => sizingOptions({ sizing: true, broker: "kafka" })).toThrow("--broker");
});

describe("a report", () => {
  const use = { seconds: 10, loops: 1, clientLoop: 1, machine: 14 };
  const saturation: MeasuredSaturation = {
    costs,
    ...{ workers: 1, slots: 4, callers: 8, calls: 300, hits: 150, availableCores: 1.6 },
    use: { ...use, workers: 2, sandboxes: 4, broker: 2, client: 2 },
  };
  const calibration = {
    ...{
      slotSeconds: 0.12,
      templateSeconds: 0,
      refillSeconds: 0.02,
      idleWorkerCores: 0,
      idleOtherCores: 0,
    },
    memory: { worker: 2 ** 20, template: 0, idle: 2 ** 21, running: 2 ** 22 },
  };
  const report: SizingReport = {
    ...{ date: "2026-11-28", commit: "abc1234", kernel: "6.12", versions: {} },
    machine: { cpu: "a processor", cores: 2, memoryBytes: 1 },
    ...{ broker: "amqp", workDirs: "in memory" },
    kinds: [{ name: "waits", calibration, costs, saturations: [saturation] }],
    brokers: [{ broker: "dev", calibration, costs }],
  };

  test("compares each prediction with its measurement", () => {
    const text = formatSizing(report);
    expect(text).toContain("| waits | 1 | 4 | 1.60 | 1.00 | 32 | slots | 30 | +7 % ✓ | 50 % |");
    expect(text).toContain("Of 1 predictions 1 are within 15 %; the greatest error is 7 %.");
    const slow = { ...saturation, calls: 100 };
    const missed = formatSizing({
      ...report,
      kinds: [{ name: "waits", calibration, costs, saturations: [slow] }],
    });
    expect(missed).toMatch(/\| 10 \| \+2\d\d % ✗ \|/);
    expect(text).toContain("| waits | 120.0 |  | 20.0 | 6.00 | 4.00 | 10.0 | 2.00 | 2.00 |");
    expect(text).toContain("| waits | 1.0 |  | 2.0 | 4.0 | 20.0 |");
    expect(text).toContain("| DevBroker | 2.00 | 0.000 |");
  });

  test("says what one worker serves, up to what its event loop does", () => {
    const [, cells = ""] = /^\| waits (.*)$/m.exec(formatServed(report)) ?? [];
    const rates = [...cells.matchAll(/(\d+) \(/g)].map(([, rate]) => Number(rate));
    expect(rates).toHaveLength(5);
    expect(rates[0]).toBeGreaterThan(55);
    expect(rates[4]).toBeGreaterThan(230);
    expect(rates[4]).toBeLessThanOrEqual(250);
    expect(cells).toMatch(/\|  \| 250 \|$/);
  });
});
