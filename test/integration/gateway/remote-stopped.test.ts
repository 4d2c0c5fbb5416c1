/**
 * A worker that stops while its tool waits for one of another worker, on a broker that redelivers.
 */
import { expect, test } from "vitest";
import { decodeAnswer, encodeRequest } from "../../../harness/messages.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { createMemoryBroker } from "../../fakes/memory-broker/broker.ts";
import { digs, startDiggingWorker } from "../../support/gateway/digging-worker.ts";
import { pull } from "../../conformance/broker.ts";

const namespace = "ns";

/** A call that waits for the tool `weather` of nobody when its worker is stopped. */
async function stopped(entry: { readonly idempotent?: boolean }) {
  const memory = createMemoryBroker({ namespace });
  const calls = memory.subscribe(invokeTopic(namespace, "weather"));
  const answers = memory.subscribe(responseTopic(namespace, "agent", ">"));
  const tool = { ...digs, ...entry, gateway: { remote: ["weather"] } };
  const worker = await startDiggingWorker(namespace, memory, "ping", tool);
  const args = { level: 0, to: ["weather", "ping"] };
  const request = encodeRequest("1", "agent", { tool: "ping", args, timeoutSeconds: 60 });
  const replyTo = responseTopic(namespace, "agent", "1");
  memory.publish(invokeTopic(namespace, "ping"), request, { replyTo });
  for await (const _call of calls) break;
  await worker[Symbol.asyncDispose]();
  return { memory, answers };
}

test("its call is answered, and does not run again", async () => {
  const { answers } = await stopped({});
  for await (const { payload } of answers) {
    expect(decodeAnswer(payload)).toMatchObject({ kind: "error", code: "SANDBOX_FAILED" });
    break;
  }
});

test("its call goes to another worker if the entry says that it may run twice", async () => {
  const { memory } = await stopped({ idempotent: true });
  await using next = await memory.connect(["ping"], new AbortController().signal);
  expect(await pull(next).next()).toMatchObject({ deliveryCount: 2 });
});
