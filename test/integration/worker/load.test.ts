/**
 * Slots, waiting, deadlines and time limits.
 */
import { describe, expect, test, vi } from "vitest";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { encodeRequest } from "../../../harness/messages.ts";
import { invokeTopic, responseTopic, statusTopic } from "../../../worker/protocol/topics.ts";
import { type Rig, namespace, startRig } from "../../support/workers/rig.ts";
import { patience } from "../../support/patience.ts";

const tools = {
  well: { function: "well" },
  sleeps: { function: "sleeps" },
  short: { function: "sleeps", timeout_seconds: 1 },
  ignores_term: { function: "ignores_term" },
};

describe("under load", () => {
  test("more calls than slots all get their answers", { tags: "full" }, async () => {
    await using rig = await startRig({ tools, environment: { SANDBOX_MAX_CONCURRENT: "2" } });
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => rig.call("well", { message: `call ${index}` })),
    );
    expect(results.map((result) => result.kind === "success" && result.toolResult["said"])).toEqual(
      Array.from({ length: 20 }, (_, index) => `call ${index}`),
    );
  });

  test(
    "a call beyond slots and waiting line is refused at once",
    { tags: ["full", "promise-R6"] },
    async () => {
      await using rig = await startRig({
        tools,
        environment: { SANDBOX_MAX_CONCURRENT: "1", SANDBOX_MAX_QUEUED: "1" },
      });
      const calls = Array.from({ length: 4 }, () => rig.call("sleeps", { seconds: 3 }));
      const kinds = (await Promise.all(calls)).map((result) =>
        result.kind === "error" ? result.code : result.kind,
      );
      expect(kinds.toSorted()).toEqual([
        "RESOURCE_EXHAUSTED",
        "RESOURCE_EXHAUSTED",
        "success",
        "success",
      ]);
    },
  );

  test("too little free disk is RESOURCE_EXHAUSTED with both numbers", async () => {
    await using rig = await startRig({
      tools,
      environment: { SANDBOX_MIN_FREE_DISK_MB: String(2 ** 31) },
    });
    expect(await rig.call("well")).toMatchObject({
      kind: "error",
      code: "RESOURCE_EXHAUSTED",
      message: expect.stringMatching(/disk space.*\d+ bytes are free, \d+ are needed/),
    });
  });
});

describe("a time limit", () => {
  test("is the smaller of what manifest and request say", async () => {
    await using rig = await startRig({ tools });
    const results = await Promise.all([
      rig.call("short", { seconds: 20 }, { timeoutSeconds: 30 }),
      rig.call("sleeps", { seconds: 20 }, { timeoutSeconds: 1 }),
      rig.call("short", { seconds: 0.1 }, { timeoutSeconds: 30 }),
    ]);
    expect(results.map((result) => result.kind)).toEqual(["timed-out", "timed-out", "success"]);
  });

  test(
    "ends a tool that ignores SIGTERM, while its agent still waits",
    { tags: ["full", "promise-E4"] },
    async () => {
      await using rig = await startRig({ tools });
      const result = await rig.call("ignores_term", {}, { timeoutSeconds: 1 });
      expect(result.kind).toBe("timed-out");
      expect(result.roundTripMs).toBeGreaterThan(1_000);
    },
  );
});

describe("a call on a broker that keeps no calls", () => {
  async function answerTo(rig: Rig, sentAtMs: number): Promise<unknown> {
    const id = crypto.randomUUID();
    const patterns = [responseTopic(namespace, "late", ">")];
    await using client = await DevClient.connect(
      { host: rig.broker.host, port: rig.broker.port, name: "late", patterns },
      AbortSignal.timeout(30_000),
    );
    await client.publish(
      invokeTopic(namespace, "well"),
      encodeRequest(id, "late", { tool: "well", timeoutSeconds: 5 }),
      {
        replyTo: responseTopic(namespace, "late", id),
        statusTo: statusTopic(namespace, "late", id),
        timestamp: sentAtMs,
      },
      AbortSignal.timeout(30_000),
    );
    for await (const message of client.messages(AbortSignal.timeout(30_000))) {
      return JSON.parse(Buffer.from(message.payload).toString());
    }
    return undefined;
  }

  test("is run, however far behind its agent's clock is", async () => {
    await using rig = await startRig({ tools });
    expect(await answerTo(rig, Date.now() - 16_000)).toMatchObject({
      result: { timed_out: false, tool_result: { said: "hi" } },
    });
  });
});

describe("a call that waits in line", () => {
  test("is answered while its agent still waits, when its turn does not come", async () => {
    await using rig = await startRig({ tools, environment: { SANDBOX_MAX_CONCURRENT: "1" } });
    // It is stopped with the rig.
    void rig.call("sleeps", { seconds: 600 }, { timeoutSeconds: 600 });
    await vi.waitFor(() => expect(rig.logLines.join("\n")).toContain("tool.started"), patience);
    expect(await rig.call("well", {}, { timeoutSeconds: 1 })).toMatchObject({ kind: "timed-out" });
  });
});
