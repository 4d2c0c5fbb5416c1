/**
 * What the spine answers before anything is opened for a call.
 */
import { describe, expect, test } from "vitest";
import { createInvoker } from "../../../worker/invocation/invoker.ts";
import type { Invocation } from "../../../worker/protocol/invocation.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { Slots } from "../../../worker/support/slots.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";

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

describe("a late call for a tool that was removed", () => {
  test("is answered TOOL_NOT_AVAILABLE, which agents try again elsewhere, and opens nothing", async () => {
    const slots = new Slots({ capacity: 1, maxWaiting: 0 });
    const invoker = createInvoker({
      resolve: () => undefined,
      slots,
      runners: new Map(),
      backend: { acquire: unused },
      store: { open: unused, save: unused },
      scopeOf: () => ({ root: "", userId: "", sessionId: "" }),
      profiles: builtInProfiles,
      defaultProfile: "standard",
      defaultTimeoutSeconds: 1,
      workBase: "/",
      minFreeDiskBytes: 0,
      clock: systemClock,
    });
    const outcome = await invoker.invoke(invocation, {
      signal: new AbortController().signal,
      log: createLogger("silent", 1),
      onStatus: () => undefined,
    });
    expect(outcome).toMatchObject({
      kind: "error",
      error: {
        code: "TOOL_NOT_AVAILABLE",
        retryable: true,
        message: "Tool 'gone' is not available on this worker",
      },
    });
    expect(slots.inUse).toBe(0);
  });
});
