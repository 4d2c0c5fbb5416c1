/**
 * The worker and a broker that comes and goes.
 */
import { describe, expect, test, vi } from "vitest";
import { Agent } from "../../../../harness/agent.ts";
import { DevClient } from "../../../support/brokers/dev-client.ts";
import { encodeRequest } from "../../../../harness/messages.ts";
import { invokeTopic, responseTopic } from "../../../../worker/protocol/topics.ts";
import { type Rig, namespace, startRig } from "../../../support/workers/rig.ts";
import { patience } from "../../../support/patience.ts";

const tools = { well: { function: "well" }, sleeps: { function: "sleeps" } };
const replyTo = responseTopic(namespace, "raw", "one");

const connect = (rig: Rig) =>
  DevClient.connect(
    { host: rig.broker.host, port: rig.broker.port, name: "raw", patterns: [replyTo] },
    AbortSignal.timeout(30_000),
  );

describe("when the connection is lost", () => {
  test(
    "a running call goes on and is answered over the next connection",
    { tags: "full" },
    async () => {
      await using rig = await startRig({ tools });
      const before = await connect(rig);
      const request = encodeRequest("one", "raw", {
        tool: "sleeps",
        args: { seconds: 2 },
        timeoutSeconds: 30,
      });
      await before.publish(
        invokeTopic(namespace, "sleeps"),
        request,
        { replyTo },
        AbortSignal.timeout(30_000),
      );
      await vi.waitFor(() => expect(rig.logLines.join("\n")).toContain("call.received"), patience);
      rig.broker.dropConnections();
      await before[Symbol.asyncDispose]();

      await using after = await connect(rig);
      for await (const { payload } of after.messages(AbortSignal.timeout(30_000))) {
        expect(JSON.parse(Buffer.from(payload).toString())).toMatchObject({
          id: "one",
          result: { tool_result: { slept: 2 } },
        });
        break;
      }
    },
  );

  test("its tools are served again, over new client ids", async () => {
    await using rig = await startRig({ tools });
    const servers = () =>
      rig.broker.subscriptions
        .filter(({ patterns }) => patterns.includes(invokeTopic(namespace, "well")))
        .map(({ clientId }) => clientId);
    const before = servers();
    rig.broker.dropConnections();
    await vi.waitFor(() => expect(new Set(servers()).difference(new Set(before)).size).toBe(1), {
      timeout: 30_000,
    });
    const address = { host: rig.broker.host, port: rig.broker.port, namespace };
    await using agent = await Agent.connect(address, AbortSignal.timeout(30_000));
    expect(await agent.call({ tool: "well", timeoutSeconds: 20 })).toMatchObject({
      kind: "success",
    });
  });
});
