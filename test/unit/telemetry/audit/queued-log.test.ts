/**
 * The audit log on real files: order, full disks, rotation, several writers, and its bounds.
 */
import { execFile } from "node:child_process";
import { constants, open, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { AuditError, type AuditLog } from "../../../../worker/telemetry/audit/audit.ts";
import { openAuditLog } from "../../../../worker/telemetry/audit/open.ts";
import {
  QueuedAuditLog,
  closeTimeoutMs,
  maxWaitingBytes,
  requiredTimeoutMs,
  retryMs,
} from "../../../../worker/telemetry/audit/queued-log.ts";
import { type Clock, systemClock } from "../../../../worker/support/clock.ts";
import { HandClock } from "../../broker/hand-clock.ts";
import { ownFileSystem } from "../../../support/sandboxes/own-file-system.ts";
import { type KeptLog, keptLog } from "../../../support/workers/kept-log.ts";
import { reachableDirectory } from "../../../support/workers/rig.ts";
import { patience } from "../../../support/patience.ts";

const neverAborted = new AbortController().signal;
/** A clock that waits little before another attempt. */
const impatient: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms === retryMs ? 5 : ms, signal),
};

async function newDirectory(): Promise<string> {
  const directory = await reachableDirectory();
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function openAt(
  path: string,
  isRequired = false,
  clock = impatient,
): Promise<{ audit: AuditLog; log: KeptLog }> {
  const log = keptLog();
  const target = { kind: "file", path } as const;
  const audit = await openAuditLog({ target, isRequired }, { workerId: "w", clock, log });
  onTestFinished(() => audit[Symbol.asyncDispose]());
  return { audit, log };
}

const line = (task: number | string) => ({ event: "call.end", task: String(task) }) as const;

function linesOf(text: string): readonly Record<string, unknown>[] {
  return text
    .split("\n")
    .filter(Boolean)
    .map((each) => JSON.parse(each) as Record<string, unknown>);
}

async function tasksIn(path: string): Promise<readonly unknown[]> {
  return linesOf(await readFile(path, "utf8")).map(({ task }) => task);
}

describe("a file", () => {
  test("gets the lines in order, after those that it has, and is closed to others", async () => {
    const path = join(await newDirectory(), "audit.log");
    await writeFile(path, '{"task":"old"}\n', { mode: 0o600 });
    const { audit } = await openAt(path);
    for (let task = 0; task < 100; task++) audit.record(line(task));
    await audit[Symbol.asyncDispose]();
    const tasks = Array.from({ length: 100 }, (_, task) => String(task));
    expect(await tasksIn(path)).toEqual(["old", ...tasks]);
    const [last] = linesOf(await readFile(path, "utf8")).slice(-1);
    expect(last).toMatchObject({ audit: 1, worker: "w", event: "call.end" });
    expect(new Date(last!["time"] as string).toISOString()).toBe(last!["time"]);
  });

  test("is created for owner and group, in a directory that exists", async () => {
    const directory = await newDirectory();
    await openAt(join(directory, "audit.log"));
    expect((await stat(join(directory, "audit.log"))).mode & 0o027).toBe(0);
    const { log } = await openAt(join(directory, "missing/audit.log"));
    expect(log.events).toEqual(["audit.failed"]);
  });

  test("is not followed where it is a link", { tags: "promise-R10" }, async () => {
    const directory = await newDirectory();
    await symlink(join(directory, "elsewhere"), join(directory, "audit.log"));
    await expect(openAt(join(directory, "audit.log"), true)).rejects.toThrow("ELOOP");
    const { audit } = await openAt(join(directory, "other.log"));
    await rename(join(directory, "audit.log"), join(directory, "other.log"));
    audit.record(line(1));
    await vi.waitFor(() => expect(audit.warnings).not.toEqual([]), patience);
    await expect(stat(join(directory, "elsewhere"))).rejects.toThrow("ENOENT");
  });

  test("that is renamed, replaced or removed is followed by a new one", async () => {
    const path = join(await newDirectory(), "audit.log");
    const { audit, log } = await openAt(path, true);
    await audit.require(line("first"), neverAborted);
    await rename(path, `${path}.1`);
    await audit.require(line("second"), neverAborted);
    await rename(path, `${path}.2`);
    await writeFile(path, "");
    await audit.require(line("third"), neverAborted);
    expect(await tasksIn(path)).toEqual(["third"]);
    await rm(path);
    await audit.require(line("fourth"), neverAborted);
    expect(await tasksIn(path)).toEqual(["fourth"]);
    expect(await tasksIn(`${path}.1`)).toEqual(["first"]);
    expect(await tasksIn(`${path}.2`)).toEqual(["second"]);
    expect(log.events).toEqual([]);
  });

  test("that is truncated goes on at its beginning", async () => {
    const path = join(await newDirectory(), "audit.log");
    const { audit } = await openAt(path, true);
    await audit.require(line("first"), neverAborted);
    await writeFile(path, "");
    await audit.require(line("second"), neverAborted);
    expect(await tasksIn(path)).toEqual(["second"]);
  });

  test("of two processes has every line of both, whole", { tags: "full" }, async () => {
    const path = join(await newDirectory(), "audit.log");
    const count = 2_000;
    const program = `
      import { openAuditLog } from ${JSON.stringify(import.meta.resolve("../../../../worker/telemetry/audit/open.ts"))};
      import { systemClock } from ${JSON.stringify(import.meta.resolve("../../../../worker/support/clock.ts"))};
      const [path, workerId] = process.argv.slice(-2);
      const target = { kind: "file", path };
      const audit = await openAuditLog({ target, isRequired: false }, { workerId, clock: systemClock, log: console });
      for (let task = 0; task < ${count}; task++) {
        audit.record({ event: "call.end", task: String(task), user: "u".repeat(task % 400) });
        if (task % 100 === 0) await new Promise(setImmediate);
      }
      await audit[Symbol.asyncDispose]();`;
    const run = promisify(execFile);
    const argv = ["--input-type=module", "-e", program, "--", path];
    await Promise.all(["a", "b"].map((id) => run(process.execPath, [...argv, id])));
    const lines = linesOf(await readFile(path, "utf8"));
    for (const id of ["a", "b"]) {
      const own = lines.filter(({ worker }) => worker === id).map(({ task }) => task);
      expect(own).toEqual(Array.from({ length: count }, (_, task) => String(task)));
    }
  });
});

describe("a full disk", () => {
  /** A log on a file system of two pages, one of which another file fills. */
  async function openOnFullDisk(isRequired: boolean) {
    const disk = await ownFileSystem("8k");
    await writeFile(join(disk, "other"), "x".repeat(4096));
    const path = join(disk, "audit.log");
    return { ...(await openAt(path, isRequired)), path, free: () => rm(join(disk, "other")) };
  }

  test("is reported once, and costs no line once there is room", async () => {
    const { audit, log, path, free } = await openOnFullDisk(false);
    for (let task = 0; task < 60; task++) audit.record(line(task));
    await vi.waitFor(() => expect(audit.warnings).toHaveLength(1), patience);
    expect(audit.notReadyReasons).toEqual([]);
    await free();
    await vi.waitFor(() => expect(audit.warnings).toEqual([]), patience);
    await audit[Symbol.asyncDispose]();
    expect(log.events).toEqual(["audit.failed", "audit.recovered"]);
    expect(log.factsOf("audit.recovered")).toEqual([{ lost: 0 }]);
    // What fits of the line in between is a line of its own.
    const whole = (await readFile(path, "utf8")).split("\n").filter((text) => text.endsWith("}"));
    const tasks = whole.map((text) => (JSON.parse(text) as { task: string }).task);
    expect(tasks).toEqual(Array.from({ length: 60 }, (_, task) => String(task)));
  });

  test("fails what needs a line, and is named by the health probe, if the log is required", async () => {
    const { audit, log, path, free } = await openOnFullDisk(true);
    const results = await Promise.allSettled(
      Array.from({ length: 60 }, (_, task) => audit.require(line(task), neverAborted)),
    );
    const failed = results.filter(({ status }) => status === "rejected");
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThan(60);
    for (const each of failed) {
      expect((each as PromiseRejectedResult).reason).toBeInstanceOf(AuditError);
    }
    expect(audit.notReadyReasons).toEqual(["the audit log cannot be written"]);
    expect(audit.warnings).toEqual([]);
    await expect(audit.require(line("at once"), neverAborted)).rejects.toThrow(AuditError);
    await free();
    await vi.waitFor(() => expect(audit.notReadyReasons).toEqual([]), patience);
    await audit.require(line("afterwards"), neverAborted);
    expect(log.events).toEqual(["audit.failed", "audit.recovered"]);
    expect(await readFile(path, "utf8")).toContain('"at once"');
  });

  test("leaves lines out that memory cannot hold, and counts them", async () => {
    const { audit, log } = await openAt("/dev/full");
    const long = { ...line("x"), user: "u".repeat(400) };
    const fits = Math.floor(maxWaitingBytes / 500);
    for (let count = 0; count < 2 * fits; count++) audit.record(long);
    // No write has had its turn: the bound is what failed.
    expect(log.events).toEqual(["audit.failed"]);
    await audit[Symbol.asyncDispose]();
    expect(log.events).toEqual(["audit.failed", "audit.lines_lost"]);
    const [{ lost }] = log.factsOf("audit.lines_lost") as [{ lost: number }];
    expect(lost).toBe(2 * fits);
  });
});

test("a line that memory cannot hold fails its own call only", async () => {
  const writable = Promise.withResolvers<void>();
  const sink = { append: () => writable.promise, [Symbol.asyncDispose]: () => Promise.resolve() };
  const parts = { workerId: "w", isRequired: true, clock: systemClock, log: keptLog() };
  await using audit = new QueuedAuditLog({ ...parts, sink });
  const first = audit.require(line("first"), neverAborted);
  const long = { ...line("x"), user: "u".repeat(400) };
  for (let bytes = 0; bytes < maxWaitingBytes; bytes += 400) audit.record(long);
  await expect(audit.require(long, neverAborted)).rejects.toThrow(AuditError);
  writable.resolve();
  await first;
});

test("lines that are written take no memory: any number of them passes", async () => {
  const log = keptLog();
  let bytes = 0;
  const sink = {
    append: (appended: Buffer) => Promise.resolve(void (bytes += appended.byteLength)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const parts = { workerId: "w", isRequired: true, clock: systemClock, log };
  await using audit = new QueuedAuditLog({ ...parts, sink });
  const long = { ...line("x"), user: "u".repeat(400) };
  while (bytes <= maxWaitingBytes) {
    for (let count = 0; count < 1_000; count++) audit.record(long);
    await audit.require(long, neverAborted);
  }
  expect(log.events).toEqual([]);
});

describe("a reader of a pipe that is slow", () => {
  test("delays lines, and loses none", async () => {
    const path = join(await newDirectory(), "pipe");
    await promisify(execFile)("mkfifo", [path]);
    const reader = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const { audit, log } = await openAt(path, false, systemClock);
    // More than a pipe holds.
    for (let task = 0; task < 1_000; task++) audit.record(line(task));
    let text = "";
    await vi.waitFor(async () => {
      const { bytesRead, buffer } = await reader.read(Buffer.alloc(10_000)).catch(() => ({
        bytesRead: 0,
        buffer: Buffer.alloc(0),
      }));
      text += buffer.subarray(0, bytesRead).toString();
      expect(text).toContain('"999"');
    }, patience);
    await audit[Symbol.asyncDispose]();
    await reader.close();
    expect(linesOf(text)).toHaveLength(1_000);
    expect(log.events).toEqual([]);
  });
});

describe("a log that takes a line and never ends it", () => {
  function hanging(isRequired = true) {
    const clock = new HandClock();
    const log = keptLog();
    const sink = { append: () => new Promise<void>(() => {}), [Symbol.asyncDispose]: vi.fn() };
    return {
      audit: new QueuedAuditLog({ sink, workerId: "w", isRequired, clock, log }),
      clock,
      log,
      sink,
    };
  }

  test("fails a call that needs the line, after a time", async () => {
    const { audit, clock, log } = hanging();
    const required = audit.require(line(1), neverAborted);
    clock.advance(requiredTimeoutMs);
    await expect(required).rejects.toThrow(AuditError);
    expect(audit.notReadyReasons).toHaveLength(1);
    expect(log.events).toEqual(["audit.failed"]);
  });

  test("lets a call go on after a time, if the log is not required", async () => {
    const { audit, clock, log } = hanging(false);
    const waiting = audit.require(line(1), neverAborted);
    clock.advance(requiredTimeoutMs);
    await waiting;
    await audit.require(line(2), neverAborted);
    expect(audit.warnings).toHaveLength(1);
    expect(log.events).toEqual(["audit.failed"]);
  });

  test("releases a call that is stopped, with the reason", async () => {
    const stopping = new AbortController();
    const required = hanging().audit.require(line(1), stopping.signal);
    stopping.abort(new Error("stopped"));
    await expect(required).rejects.toThrow("stopped");
  });

  test("does not keep the worker from its end", async () => {
    const { audit, clock, log, sink } = hanging();
    audit.record(line(1));
    const closed = audit[Symbol.asyncDispose]();
    clock.advance(closeTimeoutMs);
    await closed;
    expect(log.factsOf("audit.lines_lost")).toEqual([{ lost: 1 }]);
    expect(sink[Symbol.asyncDispose]).not.toHaveBeenCalled();
  });
});
