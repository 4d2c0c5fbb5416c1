/**
 * One delivery to its settlement: what is answered, what goes back to the broker, and in which order.
 */
import { Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Delivery, OutboundMessage, Settlement } from "../../../worker/broker/broker.ts";
import { type HandlerParts, handleDelivery } from "../../../worker/invocation/handler.ts";
import type { CallContext } from "../../../worker/invocation/invoker.ts";
import type { InvocationOutcome } from "../../../worker/protocol/invocation.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { Slots } from "../../../worker/support/slots.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

const namespace = "test";
const replyTo = "reply/here";
const statusTo = "status/here";
const neverAborted = new AbortController().signal;

const request = Buffer.from(
  JSON.stringify({
    id: "7",
    method: "sam_remote_tool/invoke",
    params: { task_id: "7", tool_name: "echo", app_name: "a", user_id: "u", session_id: "s" },
  }),
);

const success = {
  kind: "success",
  toolResult: { said: "hi" },
  createdArtifacts: [],
  executionTimeMs: 1,
  mayRunAgain: true,
} as const;

function givenUp(begun: boolean, mayRunAgain: boolean): InvocationOutcome {
  return { kind: "given-up", begun, mayRunAgain, executionTimeMs: 1 };
}

interface Setting {
  readonly outcome: InvocationOutcome;
  readonly redelivers: boolean;
  /** Statuses of the tool, all at once. */
  readonly statuses: readonly string[];
  readonly properties: Readonly<Record<string, string>>;
  publish(message: OutboundMessage, signal: AbortSignal): Promise<void>;
  settle(outcome: Settlement): Promise<void>;
}

/** Handles one request; what the broker was told, in order, and what was logged. */
async function handle(changes: Partial<Setting>) {
  const told: string[] = [];
  const logged: string[] = [];
  const setting: Setting = {
    outcome: success,
    redelivers: true,
    statuses: [],
    properties: { replyTo, statusTo },
    publish: () => Promise.resolve(),
    settle: () => Promise.resolve(),
    ...changes,
  };
  const log = createLogger(
    "debug",
    new Writable({
      write: (chunk: Buffer, _encoding, done) => (logged.push(chunk.toString()), done()),
    }),
  );
  const parts: HandlerParts = {
    namespace,
    session: {
      redelivers: setting.redelivers,
      async publish(message, signal) {
        await setting.publish(message, signal);
        told.push(`${message.topic} ${Buffer.from(message.payload).toString()}`);
      },
    },
    invoker: {
      invoke(_invocation, { onStatus }: CallContext) {
        for (const status of setting.statuses) onStatus(status);
        return Promise.resolve(setting.outcome);
      },
    },
    largeRequests: new Slots({ capacity: 1, maxWaiting: 0 }),
    // Nobody waits long for a broker that does not confirm.
    clock: { ...systemClock, sleep: () => nextTurn() },
    log,
  };
  const delivery: Delivery = {
    topic: invokeTopic(namespace, "echo"),
    payload: request,
    redelivered: false,
    properties: setting.properties,
    async settle(outcome) {
      told.push(outcome);
      await setting.settle(outcome);
    },
  };
  const signals = { wait: neverAborted, run: neverAborted, publish: neverAborted };
  const settlement = await handleDelivery(parts, delivery, signals);
  return { told, logged: logged.join(""), settlement };
}

const answerOf = (line: string | undefined): unknown =>
  JSON.parse(line!.replace(`${replyTo} `, ""));

describe("a call that the worker gives up goes back to the broker, unanswered,", () => {
  test.for([
    ["before its tool began", givenUp(false, true)],
    ["when its tool had begun and may run again", givenUp(true, true)],
  ] as const)("%s", async ([, outcome]) => {
    const { told, settlement, logged } = await handle({ outcome });
    expect(told).toEqual(["failed"]);
    expect(settlement).toBe("failed");
    expect(logged).toContain("invocation given back");
  });
});

describe("a call that the worker gives up is answered and then accepted", () => {
  test("when its tool had begun and must not run again, with the reason", async () => {
    const { told, settlement } = await handle({ outcome: givenUp(true, false) });
    expect(answerOf(told[0])).toMatchObject({
      id: "7",
      error: {
        code: "SANDBOX_FAILED",
        message:
          "The tool was stopped because the worker is shutting down. Its manifest entry forbids to run the call again",
      },
    });
    expect(told.slice(1)).toEqual(["accepted"]);
    expect(settlement).toBe("accepted");
  });

  test.for([
    [
      "TOOL_NOT_AVAILABLE, which agents try again,",
      "before its tool began",
      givenUp(false, true),
      "TOOL_NOT_AVAILABLE",
      "The worker is shutting down",
    ],
    [
      "SANDBOX_FAILED",
      "once its tool had begun",
      givenUp(true, true),
      "SANDBOX_FAILED",
      "The tool was stopped because the worker is shutting down",
    ],
  ] as const)(
    "with %s %s, by a broker that redelivers nothing",
    async ([, , outcome, code, message]) => {
      const { told, logged } = await handle({ outcome, redelivers: false });
      expect(answerOf(told[0])).toMatchObject({ error: { code, message } });
      expect(told.slice(1)).toEqual(["accepted"]);
      expect(logged).toContain(`"code":"${code}"`);
    },
  );
});

describe("a delivery is settled", () => {
  test("as accepted after its answer is confirmed", async () => {
    const { told } = await handle({});
    expect(answerOf(told[0])).toMatchObject({ result: { tool_result: { said: "hi" } } });
    expect(told.slice(1)).toEqual(["accepted"]);
  });

  test.for([
    ["failed", "may run again", true],
    ["rejected, so that nobody runs it again,", "must not", false],
  ] as const)(
    "as %s when its answer cannot be published and the call %s",
    async ([, , mayRunAgain]) => {
      const { told, logged } = await handle({
        outcome: { ...success, mayRunAgain },
        publish: () => Promise.reject(new Error("the broker is gone")),
      });
      expect(told).toEqual([mayRunAgain ? "failed" : "rejected"]);
      expect(logged).toContain("answer could not be published");
    },
  );

  test("as rejected when nobody can be answered", async () => {
    expect((await handle({ properties: {} })).told).toEqual(["rejected"]);
  });

  test("and when that fails, the log says so and the answer is out all the same", async () => {
    const { told, logged } = await handle({
      settle: () => Promise.reject(new Error("the channel is closed")),
    });
    expect(told).toHaveLength(2);
    expect(logged).toMatch(/"outcome":"accepted".*"msg":"delivery could not be settled"/);
    expect(logged).toContain("the channel is closed");
  });
});

describe("statuses", () => {
  /** A broker that does not confirm statuses until the call is over. */
  function slowBroker() {
    const held: AbortSignal[] = [];
    return {
      held,
      publish: ({ topic }: OutboundMessage, signal: AbortSignal): Promise<void> => {
        if (topic === replyTo) return Promise.resolve();
        held.push(signal);
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
      },
    };
  }

  test.for([
    ["its answer", success],
    ["it was given back", givenUp(true, true)],
  ] as const)("of a call are out before %s", async ([, outcome]) => {
    const { told } = await handle({ outcome, statuses: ["one", "two"] });
    const texts = told.map((line) => /"status_text":"(\w+)"/.exec(line)?.[1] ?? "end");
    expect(texts.slice(0, 3)).toEqual(["one", "two", "end"]);
  });

  test.for([
    ["its answer", success],
    ["it was given back", givenUp(true, true)],
  ] as const)(
    "that the broker is slow with are called off before %s, and none comes after",
    async ([, outcome]) => {
      const { held, publish } = slowBroker();
      const calledOff: boolean[] = [];
      const settle = (): Promise<void> => {
        calledOff.push(...held.map(({ aborted }) => aborted));
        return Promise.resolve();
      };
      const { told } = await handle({ outcome, statuses: ["one", "two"], publish, settle });
      expect(calledOff).toEqual([true]);
      expect(told.join()).not.toContain(statusTo);
    },
  );
});
