/**
 * The client library and the commands over a Solace broker.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { ToolClient } from "../../../harness/client/tool-client.ts";
import { type SmfBroker, startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { serveTools } from "../../support/brokers/served-tools.ts";
import { solaceBroker } from "../../support/brokers/solace-options.ts";
import { WorkerPlace, openParts } from "../../support/workers/worker-place.ts";
import { CliRun, runCli } from "./cli-process.ts";

const namespace = "test/client";

/** The broker of one test. */
async function startBroker(): Promise<SmfBroker> {
  const server = await startSmfBroker({ rejectsUnmatched: true });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

const hostOf = ({ port }: SmfBroker): string => `127.0.0.1:${port}`;

/** How an agent is told the broker. */
const urlOf = (server: SmfBroker): string => `tcp://agent:s3cret@${hostOf(server)}/default`;

/** A tool that says what it was asked, after a status. */
function serveEcho(server: SmfBroker): Promise<AsyncDisposable> {
  const worker = solaceBroker({ host: hostOf(server), namespace, workerId: "worker" });
  return serveTools(worker, ["echo"], async (request) => {
    await request.status("Thinking");
    await request.result(request.params["args"] as object);
  });
}

describe("the client library", () => {
  const ways = {
    "a broker": (server: SmfBroker) =>
      solaceBroker({ host: hostOf(server), namespace, workerId: "client" }),
    "a URL": urlOf,
  };
  test.each(Object.entries(ways))(
    "calls a tool by %s, and hears its statuses before the result",
    async (_, brokerOf) => {
      const server = await startBroker();
      await using _tool = await serveEcho(server);
      await using client = await ToolClient.connect({ broker: brokerOf(server), namespace });
      const heard: string[] = [];
      const onStatus = (text: string): void => void heard.push(text);
      const { toolResult } = await client.invoke("echo", { text: "hé" }, { onStatus });
      expect(toolResult).toEqual({ text: "hé" });
      expect(heard).toEqual(["Thinking"]);
    },
  );

  test("learns at once that no worker serves a tool, where the broker tells", async () => {
    const server = await startBroker();
    await using client = await ToolClient.connect({ broker: urlOf(server), namespace });
    await expect(client.invoke("nobodys")).rejects.toMatchObject({ code: "UNROUTABLE" });
  });
});

describe("the harness", () => {
  test("invokes a tool of a worker by the worker's own variable", async () => {
    const server = await startBroker();
    const place = new WorkerPlace(namespace, await openParts());
    await place.startWorkerOn(solaceBroker({ host: hostOf(server), namespace }), 1);
    const args = JSON.stringify({ port: place.runs.port, name: "call" });
    await using cli = new CliRun(
      ["invoke", "--broker", "solace", "--tool", "repeatable", "--args", args],
      { SOLACE_HOST: server.url, SAM_NAMESPACE: namespace },
    );
    await place.runs.haveBegun("call");
    place.runs.finish("call");
    const { exitCode, stdout } = await cli.finished;
    expect({ exitCode, result: JSON.parse(stdout) as unknown }).toEqual({
      exitCode: 0,
      result: { told: "done" },
    });
  });

  test("listens to a call by URL, and shows no password", { tags: "full" }, async () => {
    const server = await startBroker();
    await using _tool = await serveEcho(server);
    const broker = ["--broker", urlOf(server), "--namespace", namespace];
    await using listener = new CliRun(["listen", `${namespace}/>`, "--json", ...broker]);
    const [said] = await listener.said("stderr", /Listening to .*\n/);
    expect(said).toContain(`on tcp://${hostOf(server)}/default`);
    expect(said).not.toContain("s3cret");
    const invoked = await runCli(["invoke", "--tool", "echo", ...broker]);
    expect(invoked).toMatchObject({ exitCode: 0 });
    expect(invoked.stderr).toContain("status: Thinking");
    await listener.said("stdout", /sam_remote_tool\/invoke\/echo[^]*\/status\/[^]*\/response\//);
  });
});
