/**
 * Warm starts over a technology in memory, with a clock and versions that a test moves by hand.
 */
import { Writable } from "node:stream";
import { vi } from "vitest";
import type { Runtime, ToolEntry } from "../../../worker/manifest/manifest.ts";
import type { ToolRunner } from "../../../worker/runners/runner.ts";
import { type Profile, restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { CodeVersions } from "../../../worker/pool/code/code-watch.ts";
import { CallSeries } from "../../../worker/pool/call-series.ts";
import { PooledStarts } from "../../../worker/pool/pooled-starts.ts";
import type { ToolSandbox } from "../../../worker/pool/starts.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { NotGrantedError } from "../../../worker/sandbox/host-access.ts";
import { MemoryTechnology } from "../../support/sandboxes/memory-technology.ts";
import { HandClock } from "../broker/hand-clock.ts";

const mebibyte = 1024 * 1024;

export const templateProfile: Profile = { ...restrictiveProfile, autoStart: "template" };

export interface SetUp {
  readonly maxMebibytes?: number;
  readonly cpus?: number;
  /** Calls that wait for calls of their own. */
  readonly suspendedCalls?: () => number;
  /** What a tool has that no request tightens. */
  readonly profile?: Profile;
}

/** Versions that change when a test says so. */
class HandVersions implements CodeVersions {
  readonly #listeners = new Set<(runtime: Runtime) => void>();
  readonly #versions = new Map<Runtime, number>();

  versionOf(runtime: Runtime): number {
    return this.#versions.get(runtime) ?? 0;
  }

  onChange(listener: (runtime: Runtime) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  change(runtime: Runtime): void {
    this.#versions.set(runtime, this.versionOf(runtime) + 1);
    for (const listener of this.#listeners) listener(runtime);
  }
}

export const anySignal = new AbortController().signal;

/** Sets the scene. Whoever asks disposes `starts`. */
export function setUp({
  maxMebibytes = 512,
  cpus = 2,
  profile = templateProfile,
  suspendedCalls = () => 0,
}: SetUp = {}) {
  const clock = new HandClock();
  const technology = new MemoryTechnology(clock);
  const versions = new HandVersions();
  const lines: {
    readonly level: string;
    readonly event: string;
    readonly [key: string]: unknown;
  }[] = [];
  const log = createLogger(
    "debug",
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(JSON.parse(chunk.toString()) as (typeof lines)[number]);
        done();
      },
    }),
  );
  const host: { device: string | undefined } = { device: "/dev/null" };
  const runner = technology.runner as ToolRunner;
  const series = new CallSeries(clock);
  const starts = new PooledStarts({
    runners: new Map([
      ["python", runner],
      ["node", runner],
    ]),
    backend: technology,
    networkOf: () => undefined,
    hostAccess: {
      grant: async ({ devices }) => {
        const source = host.device;
        if (source === undefined) throw new NotGrantedError("not allowed any more", "not allowed");
        return { mounts: [], devices: devices.map((path) => ({ source, path })) };
      },
    },
    versions,
    clock,
    log,
    maxBytes: maxMebibytes * mebibyte,
    cpus,
    suspendedCalls,
    series,
    profileOf: () => profile,
  });

  /** Everything that happens without time passing. */
  const rest = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const acquire = (entry: ToolEntry, more: { profile?: Profile; signal?: AbortSignal } = {}) =>
    starts.acquire(entry, more.profile ?? profile, more.signal ?? anySignal);
  return {
    clock,
    technology,
    versions,
    /** What the devices that tools ask for are, or undefined when they may have none. */
    host,
    starts,
    series,
    lines,
    rest,
    acquire,
    events: () => lines.map(({ event }) => event),
    /** Lets time pass, bit by bit. */
    pass: async (ms: number, stepMs = ms): Promise<void> => {
      await rest();
      for (let passed = 0; passed < ms; passed += stepMs) {
        clock.advance(stepMs);
        await rest();
      }
    },
    /** One whole call: how it came to its sandbox, and the code that ran. */
    call: async (entry: ToolEntry, more: { profile?: Profile } = {}) => {
      await using sandbox = await acquire(entry, more);
      return { startMode: sandbox.startMode, code: await run(sandbox) };
    },
    /** What there is of the one pool that there is. */
    pool: () => {
      const [pool] = starts.stats;
      return pool!;
    },
    until: (condition: () => void) => vi.waitFor(condition, { interval: 1 }),
  };
}

/** Has the sandbox take its call: the code that ran. */
export async function run(sandbox: ToolSandbox): Promise<string> {
  return (await (await sandbox.start("{}")).exited).stdout.text;
}
