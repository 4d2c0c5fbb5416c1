/**
 * The client library over a Solace broker.
 */
import { expect, onTestFinished, test } from "vitest";
import { ToolClient } from "../../../harness/client/tool-client.ts";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { serveTools } from "../../support/served-tools.ts";
import { solaceBroker } from "../../support/solace-options.ts";

const namespace = "test/client";

/** Where the broker of one test is. */
async function startBroker(): Promise<string> {
  const server = await startSmfBroker({ rejectsUnmatched: true });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return `127.0.0.1:${server.port}`;
}

test("calls a tool, and hears its statuses before the result", async () => {
  const host = await startBroker();
  const worker = solaceBroker({ host, namespace, workerId: "worker" });
  await using _tool = await serveTools(worker, ["echo"], async (request) => {
    await request.status("Thinking");
    await request.result(request.params["args"] as object);
  });
  const broker = solaceBroker({ host, namespace, workerId: "client" });
  await using client = await ToolClient.connect({ broker, namespace });
  const heard: string[] = [];
  const onStatus = (text: string): void => void heard.push(text);
  const { toolResult } = await client.invoke("echo", { text: "hé" }, { onStatus });
  expect(toolResult).toEqual({ text: "hé" });
  expect(heard).toEqual(["Thinking"]);
});

test("learns at once that no worker serves a tool, where the broker tells", async () => {
  const host = await startBroker();
  const broker = solaceBroker({ host, namespace, workerId: "client" });
  await using client = await ToolClient.connect({ broker, namespace });
  await expect(client.invoke("nobodys")).rejects.toMatchObject({ code: "UNROUTABLE" });
});
