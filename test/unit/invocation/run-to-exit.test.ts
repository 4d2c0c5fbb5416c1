/**
 * The end of a run: by itself, by its time limit, or because the caller gives up.
 */
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { type Run, runToExit, stopGraceMs } from "../../../worker/invocation/steps/run-to-exit.ts";
import { type Execution, type ExitReport, SandboxError } from "../../../worker/sandbox/sandbox.ts";
import { unmeasured } from "../../support/sandboxes/usage.ts";

const never = new AbortController().signal;
const nothing = { text: "", droppedBytes: 0 };
const report: ExitReport = {
  started: true,
  exitCode: 0,
  signal: undefined,
  exceeded: undefined,
  usage: unmeasured,
  stdout: nothing,
  stderr: nothing,
};
const killed: ExitReport = { ...report, exitCode: undefined, signal: "SIGKILL" };

/** A command that ends when a test says so, or when it is stopped. */
class Command implements Execution {
  readonly #end = Promise.withResolvers<ExitReport>();
  readonly exited = this.#end.promise;
  readonly stdin = undefined;
  readonly gateway = undefined;
  readonly stdout = Readable.from([]);
  readonly stderr = Readable.from([]);
  readonly stops: number[] = [];

  finish(ending: ExitReport): void {
    this.#end.resolve(ending);
  }

  fail(error: Error): void {
    this.#end.reject(error);
  }

  end(): void {}

  async stop(graceMs: number): Promise<ExitReport> {
    this.stops.push(graceMs);
    this.finish(killed);
    return this.exited;
  }
}

describe("a run", () => {
  test("ends with the command", async () => {
    const command = new Command();
    const run = runToExit(command, 60_000, never);
    command.finish(report);
    expect(await run).toEqual({ cause: "exited", report } satisfies Run);
    expect(command.stops).toEqual([]);
  });

  test("ends at its time limit, after the command was asked to end and got its grace", async () => {
    const command = new Command();
    expect(await runToExit(command, 20, never)).toEqual({ cause: "time-limit", report: killed });
    expect(command.stops).toEqual([stopGraceMs]);
  });

  test("that ended at its time limit stays so, also when the command ends by itself in its grace", async () => {
    const command = new Command();
    command.stop = (graceMs) => {
      command.stops.push(graceMs);
      command.finish(report);
      return command.exited;
    };
    expect(await runToExit(command, 20, never)).toEqual({ cause: "time-limit", report });
  });

  test("that ended at its time limit does not wait for the grace when it is given up", async () => {
    const command = new Command();
    const giveUp = new AbortController();
    command.stop = (graceMs) => {
      command.stops.push(graceMs);
      if (graceMs > 0) giveUp.abort(new Error("the worker is shut down"));
      else command.finish(killed);
      return command.exited;
    };
    expect(await runToExit(command, 20, giveUp.signal)).toEqual({
      cause: "time-limit",
      report: killed,
    });
    expect(command.stops).toEqual([stopGraceMs, 0]);
  });

  test("is given up with the signal's reason, after everything was killed at once", async () => {
    const command = new Command();
    const giveUp = new AbortController();
    const reason = new Error("the worker is shut down");
    const run = runToExit(command, 60_000, giveUp.signal);
    giveUp.abort(reason);
    await expect(run).rejects.toBe(reason);
    expect(command.stops).toEqual([0]);
  });

  test("that its caller cancels gets its grace, and ends with its report", async () => {
    const command = new Command();
    const cancel = new AbortController();
    const run = runToExit(command, 60_000, never, cancel.signal);
    cancel.abort(new Error("cancelled"));
    expect(await run).toEqual({ cause: "cancelled", report: killed });
    expect(command.stops).toEqual([stopGraceMs]);
  });

  test("that its caller cancelled is killed at once when the worker shuts down", async () => {
    const command = new Command();
    const shutdown = new AbortController();
    command.stop = (graceMs) => {
      command.stops.push(graceMs);
      if (graceMs > 0) shutdown.abort(new Error("the worker is shut down"));
      else command.finish(killed);
      return command.exited;
    };
    const cancel = AbortSignal.abort(new Error("cancelled"));
    const run = runToExit(command, 60_000, shutdown.signal, cancel);
    expect(await run).toEqual({ cause: "cancelled", report: killed });
    expect(command.stops).toEqual([stopGraceMs, 0]);
  });

  test("that was given up before it began is killed all the same", async () => {
    const command = new Command();
    const reason = new Error("too late");
    await expect(runToExit(command, 60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(command.stops).toEqual([0]);
  });

  test("fails when its processes cannot be killed", async () => {
    const command = new Command();
    const run = runToExit(command, 60_000, never);
    command.fail(new SandboxError("process 7 cannot be killed"));
    await expect(run).rejects.toThrow("process 7 cannot be killed");
  });

  test("leaves no timer behind", async () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const command = new Command();
    const run = runToExit(command, 60_000, never);
    expect(timers()).toBe(before + 1);
    command.finish(report);
    await run;
    expect(timers()).toBe(before);
  });

  test("answers 5 seconds after the limit at the latest", () => {
    expect(stopGraceMs).toBeLessThan(5_000);
  });
});
