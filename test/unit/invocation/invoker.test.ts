/**
 * What the invoker answers before anything is opened for a call.
 */
import { describe, expect, test, vi } from "vitest";
import { describedByManifest } from "../../../worker/discovery/given.ts";
import { LentSlots } from "../../../worker/invocation/slots/call-slot.ts";
import { FreeDisk } from "../../../worker/invocation/slots/capacity.ts";
import { Transfers } from "../../../worker/invocation/steps/transfers.ts";
import type { CallContext } from "../../../worker/invocation/call-context.ts";
import { type InvokerParts, createInvoker } from "../../../worker/invocation/invoker.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import type { Invocation } from "../../../worker/protocol/invocation.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { Semaphore } from "../../../worker/support/semaphore.ts";
import { patience } from "../../support/patience.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { EgressCounts } from "../../../worker/telemetry/metrics/egress-counts.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { tool as anyTool } from "../manifest/fixtures.ts";

const invocation: Invocation = {
  id: "1",
  taskId: "1",
  toolName: "gone",
  args: {},
  toolConfig: {},
  caller: { appName: "a", userId: "u", sessionId: "s" },
  references: new Map(),
  preloaded: new Map(),
  timeoutSeconds: undefined,
  requestedProfile: undefined,
  replyTo: "reply",
  statusTo: undefined,
  sentAtMs: Date.now(),
};

const unused = (): never => {
  throw new Error("nothing may be opened for this call");
};

const tool = anyTool("gone", { idempotent: false });

function newInvoker(changes: Partial<InvokerParts>) {
  const defaultSlots = new Semaphore({ capacity: 1, maxWaiting: 1 });
  return createInvoker({
    resolve: () => tool,
    slotsOf: () => defaultSlots,
    lentSlots: new LentSlots(1, 0),
    gateways: { open: unused },
    starts: { acquire: unused, disposeLater: unused },
    store: { open: unused, save: unused, deleteVersion: unused },
    scopeOf: () => ({ root: "", userId: "", sessionId: "" }),
    artifactLimits: { maxBytes: 0, callMaxBytes: 0, maxOutputs: 1 },
    toolLogs: { to: "off", maxBytes: 1024 },
    egress: new EgressCounts(),
    transfers: new Transfers(),
    profiles: builtInProfiles,
    hostNetwork: "host",
    defaultProfile: "standard",
    times: { defaultSeconds: 60, maxSeconds: Infinity },
    disk: new FreeDisk("/", systemClock),
    minFreeDiskBytes: 0,
    described: (entry) => Promise.resolve(describedByManifest(entry)),
    checker: { check: unused },
    clock: systemClock,
    ...changes,
  });
}

/** The signals of a call, and what aborts them. */
function newCall() {
  const [all, waiting] = [new AbortController(), new AbortController()];
  const context: CallContext = {
    signal: all.signal,
    waitSignal: waiting.signal,
    log: createLogger("silent", 1),
    onStatus: () => undefined,
  };
  const giveUp = {
    all: () => all.abort(new Error("the worker is shutting down")),
    waiting: () => waiting.abort(new Error("the worker is shutting down")),
  };
  return { context, giveUp };
}

describe("a late call for a tool that was removed", () => {
  test("is answered TOOL_NOT_AVAILABLE, which agents try again elsewhere, and opens nothing", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 0 });
    const invoker = newInvoker({ resolve: () => undefined, slotsOf: () => slots });
    expect(await invoker.invoke(invocation, newCall().context)).toMatchObject({
      kind: "error",
      error: {
        code: "TOOL_NOT_AVAILABLE",
        retryable: true,
        message: "Tool 'gone' is not available on this worker",
      },
      idempotent: true,
    });
    expect(slots.inUse).toBe(0);
  });

  test("is answered so by a worker that gives its calls up, too", async () => {
    const { context, giveUp } = newCall();
    giveUp.all();
    giveUp.waiting();
    expect(
      await newInvoker({ resolve: () => undefined }).invoke(invocation, context),
    ).toMatchObject({ kind: "error", error: { code: "TOOL_NOT_AVAILABLE" } });
  });
});

describe("a call that was delivered before", () => {
  const claim = { isCertain: false, begin: () => Promise.resolve(), keep: () => Promise.resolve() };
  const again: Partial<CallContext> = { claimed: { claim, mayHaveStarted: true } };

  test("is answered NOT_REPEATED for a tool that must not run twice, and opens nothing", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 0 });
    const outcome = newInvoker({ slotsOf: () => slots }).invoke(invocation, {
      ...newCall().context,
      ...again,
    });
    expect(await outcome).toMatchObject({
      kind: "error",
      error: { code: "NOT_REPEATED" },
      started: false,
      idempotent: false,
    });
    expect(slots.inUse).toBe(0);
  });

  test("is answered NOT_REPEATED for such a tool, whatever else is wrong with it", async () => {
    const wrong = { ...invocation, requestedProfile: "unknown" };
    const outcome = await newInvoker({}).invoke(wrong, { ...newCall().context, ...again });
    expect(outcome).toMatchObject({ kind: "error", error: { code: "NOT_REPEATED" } });
  });

  test("is answered NOT_REPEATED for a tool that was removed: agents would call again, under another id", async () => {
    const invoker = newInvoker({ resolve: () => undefined });
    expect(await invoker.invoke(invocation, { ...newCall().context, ...again })).toMatchObject({
      kind: "error",
      error: {
        code: "NOT_REPEATED",
        retryable: false,
        message: expect.stringContaining("'gone', which is not available") as string,
      },
      started: false,
    });
  });

  test("goes on for every other tool", async () => {
    const scopeOf = (): never => {
      throw new InvocationError("ARTIFACT_ERROR", "it went on");
    };
    const resolve = () => ({ ...tool, idempotent: true });
    const invoker = newInvoker({ resolve, scopeOf });
    expect(await invoker.invoke(invocation, { ...newCall().context, ...again })).toMatchObject({
      error: { code: "ARTIFACT_ERROR" },
      idempotent: true,
    });
  });
});

describe("a stale call", () => {
  const seconds = 1_000;
  const outcomeAfter = (ageMs: number, timeoutSeconds: number | undefined) => {
    const scopeOf = (): never => {
      throw new InvocationError("ARTIFACT_ERROR", "it was run");
    };
    const stale = { ...invocation, timeoutSeconds, sentAtMs: systemClock.nowMs() - ageMs };
    return newInvoker({ scopeOf }).invoke(stale, newCall().context);
  };

  test.for([
    ["its own time and the agent's patience", 30],
    ["the worker's usual time, where it says none, and the agent's patience", undefined],
  ] as const)(
    "that is older than %s is answered as timed out, and not run",
    async ([, timeout]) => {
      const ageMs = ((timeout ?? 60) + 10) * seconds;
      expect(await outcomeAfter(ageMs, timeout)).toMatchObject({ kind: "timeout", started: false });
    },
  );

  test("takes no slot and does not wait for one", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 1 });
    using _taken = await slots.acquire(new AbortController().signal);
    const stale = { ...invocation, sentAtMs: systemClock.nowMs() - 100 * seconds };
    const outcome = await newInvoker({ slotsOf: () => slots }).invoke(stale, newCall().context);
    expect(outcome).toMatchObject({ kind: "timeout" });
    expect(slots.waiting).toBe(0);
  });

  test("is told of in the log, with its age and how many there were", async () => {
    const { context } = newCall();
    const warn = vi.spyOn(context.log, "warn");
    const invoker = newInvoker({});
    const stale = { ...invocation, sentAtMs: systemClock.nowMs() - 100 * seconds };
    await invoker.invoke(stale, context);
    await invoker.invoke(stale, context);
    const event = "call.too_old";
    const { sentAtMs } = stale;
    expect(warn.mock.calls.map(([line]) => line)).toMatchObject([
      { event, total: 1, sentAtMs, clock: "sender", ageMs: expect.any(Number) as number },
      { event, total: 2 },
    ]);
  });

  test("is none that still has time", async () => {
    expect(await outcomeAfter(20 * seconds, 60)).toMatchObject({
      error: { code: "ARTIFACT_ERROR" },
    });
  });
});

describe("the slot of a call", () => {
  test("is one of its tool's queue, whatever waits for those of others", async () => {
    const slots = {
      default: new Semaphore({ capacity: 1, maxWaiting: 0 }),
      heavy: new Semaphore({ capacity: 1, maxWaiting: 0 }),
    };
    using _taken = await slots.heavy.acquire(new AbortController().signal);
    const slotsOf = (queue: string): Semaphore => slots[queue as keyof typeof slots];
    const outcomeOf = (queue: string) =>
      newInvoker({ resolve: () => ({ ...tool, queue }), slotsOf }).invoke(
        invocation,
        newCall().context,
      );
    expect(await outcomeOf("heavy")).toMatchObject({ error: { code: "RESOURCE_EXHAUSTED" } });
    // It had a slot: there are no sandboxes here.
    expect(await outcomeOf("default")).toMatchObject({ error: { code: "INTERNAL_ERROR" } });
  });
});

describe("a call that is given up", () => {
  const kinds = [
    ["every call", "all"],
    ["those without a slot", "waiting"],
  ] as const;
  const neverBegun = { kind: "cancelled", started: false, idempotent: false };

  test.for(kinds)(
    "with %s while it waits for one has not started, and leaves the line",
    async ([, which]) => {
      const slots = new Semaphore({ capacity: 1, maxWaiting: 1 });
      using _taken = await slots.acquire(new AbortController().signal);
      const { context, giveUp } = newCall();
      const outcome = newInvoker({ slotsOf: () => slots }).invoke(invocation, context);
      await vi.waitFor(() => expect(slots.waiting).toBe(1), patience);
      giveUp[which]();
      expect(await outcome).toMatchObject(neverBegun);
      expect(slots.waiting).toBe(0);
    },
  );

  test.for(kinds)("with %s before it came takes none, though one is free", async ([, which]) => {
    const { context, giveUp } = newCall();
    giveUp[which]();
    expect(await newInvoker({}).invoke(invocation, context)).toMatchObject(neverBegun);
  });

  test("is not answered with what broke because of that, whatever it was", async () => {
    const { context, giveUp } = newCall();
    const scopeOf = (): never => {
      giveUp.all();
      throw new Error("the connection was closed");
    };
    expect(await newInvoker({ scopeOf }).invoke(invocation, context)).toMatchObject(neverBegun);
  });

  test.for(kinds)("with %s is answered with what was wrong with it before", async ([, which]) => {
    const { context, giveUp } = newCall();
    const scopeOf = (): never => {
      giveUp[which]();
      throw new InvocationError("ARTIFACT_ERROR", "there is no such artifact");
    };
    expect(await newInvoker({ scopeOf }).invoke(invocation, context)).toMatchObject({
      kind: "error",
      error: { code: "ARTIFACT_ERROR" },
    });
  });

  test("with those without a slot goes on when it has one", async () => {
    const { context, giveUp } = newCall();
    const scopeOf = (): never => {
      giveUp.waiting();
      throw new Error("a defect");
    };
    expect(await newInvoker({ scopeOf }).invoke(invocation, context)).toMatchObject({
      kind: "error",
      error: { code: "INTERNAL_ERROR" },
    });
  });
});

describe("a call that its caller cancels", () => {
  const cancelled = { kind: "cancelled", reason: "caller", started: false };
  const newCancel = () => {
    const { context, giveUp } = newCall();
    const cancel = new AbortController();
    const abort = (): void => cancel.abort(new Error("cancelled"));
    return { context: { ...context, cancelSignal: cancel.signal }, giveUp, abort };
  };

  test("while it waits for a slot leaves the line", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 1 });
    using _taken = await slots.acquire(new AbortController().signal);
    const { context, abort } = newCancel();
    const outcome = newInvoker({ slotsOf: () => slots }).invoke(invocation, context);
    await vi.waitFor(() => expect(slots.waiting).toBe(1), patience);
    abort();
    expect(await outcome).toMatchObject(cancelled);
    expect(slots.waiting).toBe(0);
  });

  test("stays cancelled by it, whatever breaks because of that or of a shutdown after it", async () => {
    const { context, abort, giveUp } = newCancel();
    const scopeOf = (): never => {
      abort();
      giveUp.all();
      giveUp.waiting();
      throw new Error("the connection was closed");
    };
    expect(await newInvoker({ scopeOf }).invoke(invocation, context)).toMatchObject(cancelled);
  });

  test("names the outputs that remain", async () => {
    const { context, abort } = newCancel();
    const remainingArtifacts = [{ filename: "a", version: 1 }];
    const scopeOf = (): never => {
      abort();
      const { reason: cause } = context.cancelSignal;
      throw new InvocationError("ARTIFACT_ERROR", "stopped", { cause, remainingArtifacts });
    };
    const outcome = await newInvoker({ scopeOf }).invoke(invocation, context);
    expect(outcome).toMatchObject({ ...cancelled, remainingArtifacts });
  });

  test("is answered with what was wrong with it before", async () => {
    const { context, abort } = newCancel();
    const scopeOf = (): never => {
      abort();
      throw new InvocationError("ARTIFACT_ERROR", "there is no such artifact");
    };
    const outcome = await newInvoker({ scopeOf }).invoke(invocation, context);
    expect(outcome).toMatchObject({ kind: "error", error: { code: "ARTIFACT_ERROR" } });
  });
});
