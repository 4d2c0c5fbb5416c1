/**
 * The time limit of a build, which all of its steps share.
 */
import { describe, expect, test } from "vitest";
import { type TimedHost, runStep } from "../../../worker/environments/build/run.ts";
import { Redaction } from "../../../worker/environments/registry/redaction.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { ExitReport } from "../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../worker/support/clock.ts";

const never = new AbortController().signal;
const nothing = { text: "", droppedBytes: 0 };
const killed = { started: true, exitCode: undefined, signal: "SIGKILL", exceeded: undefined };

/** A host whose sandboxes run until they are stopped. */
function hostUntil(deadline: AbortSignal): TimedHost {
  const exited = Promise.withResolvers<ExitReport>();
  const report = { ...killed, stdout: nothing, stderr: nothing } as unknown as ExitReport;
  const execution = { exited: exited.promise, stop: async () => exited.resolve(report) };
  const sandbox = {
    workDir: { path: "/", writeInput: async () => undefined },
    start: async () => execution,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const backend = { acquire: async () => sandbox } as unknown as TimedHost["backend"];
  const profile = restrictiveProfile;
  return { backend, profile, clock: systemClock, timeoutSeconds: 60, deadline };
}

describe("a step of a build", () => {
  const step = {
    ...{ title: "pip", argv: ["pip"], environment: new Map(), shares: [], mounts: [] },
    ...{ files: new Map(), redaction: new Redaction([]) },
  };

  test("has what the steps before it left of the time", async () => {
    const build = new AbortController();
    const first = runStep(hostUntil(build.signal), step, async () => "", never);
    build.abort();
    await expect(first).rejects.toThrow("pip took more than 60 s");
    const second = runStep(hostUntil(build.signal), step, async () => "", never);
    await expect(second).rejects.toThrow("pip took more than 60 s");
  });
});
