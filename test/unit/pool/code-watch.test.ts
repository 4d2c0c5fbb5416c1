/**
 * When the code of tools is looked at, and what its versions say; on a clock whose sleeps last
 * until the test says so.
 */
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Runtime } from "../../../worker/manifest/manifest.ts";
import type { CodeSource } from "../../../worker/runners/runner.ts";
import { CodeWatch, pollMs, settleMs } from "../../../worker/pool/code/code-watch.ts";
import type { Clock } from "../../../worker/support/clock.ts";
import { patience } from "../../support/patience.ts";
import { eventOf } from "../../support/workers/kept-log.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "code-watch-"));
  onTestFinished(() => rm(dir, { recursive: true }));
});

/**
 * A clock on which one sleeper sleeps until the test says so, and a look takes as long as the test
 * says.
 */
class SteppedClock implements Clock {
  /** Milliseconds that every look takes. */
  lookMs = 0;
  nowMs: () => number;
  /** Milliseconds of each sleep so far. */
  readonly slept: number[] = [];
  #elapsedMs = 0;
  #wake: (() => void) | undefined;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** Read at the beginning and at the end of a look. */
  monotonicMs(): number {
    this.#elapsedMs += this.lookMs;
    return this.#elapsedMs;
  }

  get isSlept(): boolean {
    return this.#wake !== undefined;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    this.slept.push(ms);
    return new Promise((resolve, reject) => {
      const over = (): void => {
        this.#wake = undefined;
        signal?.removeEventListener("abort", abort);
      };
      const abort = (): void => {
        over();
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", abort);
      this.#wake = () => {
        over();
        resolve();
      };
    });
  }

  /** Waits until somebody sleeps. */
  async asleep(): Promise<void> {
    await vi.waitFor(() => expect(this.isSlept).toBe(true), { ...patience, interval: 1 });
  }

  /** Ends one sleep, and waits for the next. */
  async next(): Promise<void> {
    await this.asleep();
    this.#wake?.();
    await this.asleep();
  }
}

interface Line {
  readonly level: string;
  readonly facts: object;
  readonly event: string;
}

/** A follower of Python code, asked for the first time, and what it has logged. */
async function follow(
  sources: readonly CodeSource[],
  { isOld, maxEntries }: { readonly isOld: boolean; readonly maxEntries?: number },
): Promise<{
  watch: CodeWatch;
  clock: SteppedClock;
  lines: Line[];
  followed: Line | undefined;
}> {
  // Code is as old as the clock says: an hour, or about to be written.
  const clock = new SteppedClock(() => Date.now() + (isOld ? 3_600_000 : -3_600_000));
  const lines: Line[] = [];
  const line = (level: string) => (facts: object) =>
    void lines.push({ level, facts, event: eventOf(facts) });
  const log = { debug: line("debug"), warn: line("warn") };
  const runners = new Map<Runtime, { sources: readonly CodeSource[] }>([["python", { sources }]]);
  const watch = new CodeWatch({
    runners,
    clock,
    log,
    hints: false,
    ...(maxEntries === undefined ? {} : { maxEntries }),
  });
  onTestFinished(() => watch[Symbol.asyncDispose]());
  expect(watch.versionOf("python")).toBe(0);
  await clock.asleep();
  const isFirstLook = ({ event }: Line): boolean => event === "code.followed";
  const [followed] = lines.splice(lines.findIndex(isFirstLook), 1);
  expect(followed).toMatchObject({ level: "debug", facts: { runtime: "python" } });
  return { watch, clock, lines, followed };
}

/** One whole pause at settled code, which has two parts. */
async function pause(clock: SteppedClock): Promise<void> {
  await clock.next();
  await clock.next();
}

function tree(path: string): CodeSource {
  return { path, depth: "tree" };
}

describe("code that is followed", () => {
  test("is looked at once somebody follows it or asks for its version, by one poller", async () => {
    const asked: Runtime[] = [];
    const runner = (runtime: Runtime) => ({
      get sources() {
        asked.push(runtime);
        return [tree(dir)];
      },
    });
    const clock = new SteppedClock(Date.now);
    const runners = new Map([
      ["python", runner("python")],
      ["node", runner("node")],
    ] as const);
    const log = { debug() {}, warn() {} };
    await using watch = new CodeWatch({ runners, clock, log, hints: false });
    using _ = watch.onChange(() => {});
    expect(asked).toEqual([]);
    watch.versionOf("node");
    watch.versionOf("node");
    expect(asked).toEqual(["node"]);
    watch.follow("node");
    expect(asked).toEqual(["node"]);
    watch.follow("python");
    watch.versionOf("python");
    expect(asked).toEqual(["node", "python"]);
  });

  test("keeps its version as long as it stays as it is", async () => {
    await writeFile(join(dir, "tool.py"), "one");
    const { watch, clock, lines, followed } = await follow([tree(dir)], { isOld: true });
    expect(followed).toMatchObject({ facts: { isSettled: true } });
    for (let look = 0; look < 5; look++) await pause(clock);
    expect(watch.versionOf("python")).toBe(0);
    expect(lines).toEqual([]);
  });

  test("has a new version when there is another source, and when that changes", async () => {
    const sources = [tree(dir)];
    const { watch, clock } = await follow(sources, { isOld: true });
    const other = await mkdtemp(join(tmpdir(), "code-watch-"));
    onTestFinished(() => rm(other, { recursive: true }));
    sources.push(tree(other));
    for (let look = 0; look < 3; look++) await pause(clock);
    const version = watch.versionOf("python");
    expect(version).toBeGreaterThan(0);
    await writeFile(join(other, "interpreter"), "new");
    await pause(clock);
    expect(watch.versionOf("python")).toBeGreaterThan(version);
  });

  test("has a new version once it settled when it was written about when it was asked for", async () => {
    await writeFile(join(dir, "tool.py"), "one");
    const { watch, clock, followed } = await follow([tree(dir)], { isOld: false });
    expect(followed).toMatchObject({ facts: { isSettled: false } });
    expect(watch.versionOf("python")).toBe(0);
    await clock.next();
    expect(watch.versionOf("python")).toBe(1);
    for (let look = 0; look < 5; look++) await pause(clock);
    expect(watch.versionOf("python")).toBe(1);
  });

  test("has a new version at the first sign of a change, at each further one, and when it settled", async () => {
    const { watch, clock, lines } = await follow([tree(dir)], { isOld: true });
    for (const [text, version] of [
      ["a", 1],
      ["ab", 2],
      ["abc", 3],
    ] as const) {
      await writeFile(join(dir, "tool.py"), text);
      if (version === 1) await pause(clock);
      else await clock.next();
      expect(watch.versionOf("python")).toBe(version);
    }
    await clock.next();
    expect(watch.versionOf("python")).toBe(4);
    for (let look = 0; look < 3; look++) await pause(clock);
    expect(watch.versionOf("python")).toBe(4);
    expect(lines).toEqual(
      [false, false, false, true].map((isSettled, index) => ({
        level: "debug",
        facts: { event: "code.changed", runtime: "python", version: index + 1, isSettled },
        event: "code.changed",
      })),
    );
  });

  test("is told of when its version says so, until the listener has enough", async () => {
    const { watch, clock } = await follow([tree(dir)], { isOld: true });
    const told: [string, Runtime, number][] = [];
    const listen = (name: string) =>
      watch.onChange((runtime) => told.push([name, runtime, watch.versionOf(runtime)]));
    using _ = listen("first");
    {
      using _second = listen("second");
      await writeFile(join(dir, "tool.py"), "one");
      await pause(clock);
    }
    await clock.next();
    expect(told).toEqual([
      ["first", "python", 1],
      ["second", "python", 1],
      ["first", "python", 2],
    ]);
  });

  test("has no version but 0 in a language that this worker does not serve", async () => {
    const { watch } = await follow([tree(dir)], { isOld: true });
    expect(watch.versionOf("node")).toBe(0);
  });

  test("is not looked at any more once its follower is disposed of, and nobody sleeps on", async () => {
    const { watch, clock } = await follow([tree(dir)], { isOld: true });
    await watch[Symbol.asyncDispose]();
    expect(clock.isSlept).toBe(false);
    expect(watch.versionOf("python")).toBe(0);
    expect(watch.versionOf("node")).toBe(0);
    expect(clock.isSlept).toBe(false);
  });
});

describe("the pause between two looks", () => {
  /** Milliseconds of the sleeps of one pause. */
  async function pauseAt(clock: SteppedClock, sleeps: number): Promise<number> {
    const before = clock.slept.length - 1;
    for (let sleep = 0; sleep < sleeps; sleep++) await clock.next();
    return clock.slept.slice(before, before + sleeps).reduce((sum, ms) => sum + ms, 0);
  }

  test("is two seconds at little code, and a tenth of one while it changes", async () => {
    const { clock } = await follow([tree(dir)], { isOld: true });
    expect(await pauseAt(clock, 2)).toBe(pollMs);
    await writeFile(join(dir, "tool.py"), "one");
    await pause(clock);
    expect(await pauseAt(clock, 1)).toBe(settleMs);
    expect(await pauseAt(clock, 2)).toBe(pollMs);
  });

  test("is as long as nineteen looks at much code, and four while it changes", async () => {
    const { clock } = await follow([tree(dir)], { isOld: true });
    clock.lookMs = 1_000;
    await pause(clock);
    expect(await pauseAt(clock, 2)).toBe(19_000);
    await writeFile(join(dir, "tool.py"), "one");
    await pause(clock);
    expect(await pauseAt(clock, 1)).toBe(4_000);
  });
});

describe("code that cannot be looked at", () => {
  test("has changed when its directory goes and when it comes back, and that is logged once", async () => {
    const tools = join(dir, "tools");
    await mkdir(tools);
    const { watch, clock, lines } = await follow([tree(tools)], { isOld: true });
    const warnings = (): Line[] => lines.filter(({ level }) => level === "warn");
    await rename(tools, `${tools}.away`);
    await pause(clock);
    expect(watch.versionOf("python")).toBe(1);
    await clock.next();
    for (let look = 0; look < 3; look++) await pause(clock);
    expect(watch.versionOf("python")).toBe(2);
    const warning = {
      level: "warn",
      facts: { event: "code.unreadable", runtime: "python", path: tools, code: "ENOENT" },
      event: "code.unreadable",
    };
    expect(warnings()).toEqual([warning]);
    await rename(`${tools}.away`, tools);
    await pause(clock);
    expect(watch.versionOf("python")).toBe(3);
    await rename(tools, `${tools}.away`);
    await clock.next();
    expect(warnings()).toEqual([warning, warning]);
  });

  test("is no news to an operator where nothing has been installed yet", async () => {
    const source = { path: join(dir, "site-packages"), depth: "listing" } as const;
    const { watch, clock, lines } = await follow([source], { isOld: true });
    await pause(clock);
    expect(lines).toEqual([]);
    await mkdir(source.path);
    await pause(clock);
    expect(watch.versionOf("python")).toBe(1);
  });

  test("counts as changed at every poll when there is too much of it, as rarely as if it stayed", async () => {
    await Promise.all(["a", "b", "c"].map((name) => writeFile(join(dir, name), "")));
    const { watch, clock, lines } = await follow([tree(dir)], { isOld: true, maxEntries: 3 });
    for (const version of [1, 2, 3]) {
      await pause(clock);
      expect(watch.versionOf("python")).toBe(version);
    }
    expect(lines.filter(({ level }) => level === "warn")).toMatchObject([
      { facts: { path: dir, code: "TOO_LARGE" } },
    ]);
  });
});
