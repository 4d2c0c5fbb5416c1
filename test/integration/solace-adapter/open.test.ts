/**
 * A Solace broker as the configuration of a worker opens it.
 */
import { expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { openBroker } from "../../../worker/broker/open.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { connectSolacePeer } from "../../conformance/peers/solace-peer.ts";
import { patience } from "../../support/patience.ts";
import { namespace, never } from "./place.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

test("is connected to with nothing but its host, and again after an outage", async () => {
  await using server = await startSmfBroker();
  const { broker: config } = readConfig({
    SAM_NAMESPACE: namespace,
    SOLACE_HOST: `127.0.0.1:${server.port}`,
    SOLACE_RECONNECT_DELAY_MS: "20",
  });
  const log = keptLog();
  const broker = await openBroker(config, { namespace, workerId: "worker", log });
  await using session = await broker.connect(["echo"], never);
  server.dropAll();
  await vi.waitFor(() => expect(log.events).toContain("broker.connection_lost"), patience);
  await vi.waitFor(() => expect(session.connected).toBe(true), patience);
  await using peer = await connectSolacePeer({ url: server.url });
  await peer.publish(`${namespace}/a2a/v1/sam_remote_tool/invoke/echo`, "1");
  const delivery = await pull(session).next();
  expect(textOf(delivery)).toBe("1");
  await delivery.settle("accepted");
});

test.each([
  { code: 401, text: "Unauthorized" },
  { code: 403, text: "Message VPN Not Allowed" },
  { code: 403, text: "Client Username Is Shutdown" },
])("that refuses with $text what it accepted before is tried for ever", async (refusal) => {
  await using server = await startSmfBroker();
  const { broker: config } = readConfig({
    SAM_NAMESPACE: namespace,
    SOLACE_HOST: `127.0.0.1:${server.port}`,
    SOLACE_RECONNECT_DELAY_MS: "5",
  });
  const log = keptLog();
  const broker = await openBroker(config, { namespace, workerId: "worker", log });
  await using session = await broker.connect(["echo"], never);
  let refused = 0;
  server.faults.login = () => {
    refused++;
    return refusal;
  };
  server.dropAll();
  const publishing = session.publish({ topic: "answers/1", payload: Buffer.from("1") }, never);
  await vi.waitFor(() => expect(refused).toBeGreaterThan(20), patience);
  expect(session.connected).toBe(false);
  expect(log.lines).toContainEqual({
    event: "broker.connect_failed",
    facts: expect.objectContaining({
      reason: expect.stringContaining(refusal.text) as string,
    }) as object,
  });
  server.faults.login = undefined;
  expect(await publishing).toBe("confirmed");
});

test("that goes for good ends the session when the attempts are used up", async () => {
  await using server = await startSmfBroker();
  const { broker: config } = readConfig({
    SAM_NAMESPACE: namespace,
    SOLACE_HOST: `127.0.0.1:${server.port}`,
    SOLACE_RECONNECT_RETRIES: "2",
    SOLACE_RECONNECT_DELAY_MS: "1",
  });
  const log = keptLog();
  const broker = await openBroker(config, { namespace, workerId: "worker", log });
  await using session = await broker.connect(["echo"], never);
  await server.stop();
  expect(await session.closed).toMatchObject({ reason: "lost", cause: { name: "BrokerError" } });
  expect(log.events.filter((event) => event === "broker.connect_failed")).toHaveLength(1);
});
