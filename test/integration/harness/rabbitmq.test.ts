/**
 * The client library and the commands over a real RabbitMQ.
 */
import { describe, expect, test } from "vitest";
import { ToolClient } from "../../../harness/client/tool-client.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { serveTools } from "../../support/brokers/served-tools.ts";
import { never, newNamespace, useRabbitMQ } from "../amqp/node.ts";
import { CliRun, runCli } from "./cli-process.ts";

const node = useRabbitMQ();

/** A tool that says what it was asked, after a status. */
const serveEcho = (namespace: string): Promise<AsyncDisposable> =>
  serveTools(amqpBroker({ url: node().url, namespace }), ["echo"], async (request) => {
    if (!("task_id" in request.params)) return request.error("INVALID_REQUEST", "a probe");
    await request.status("Thinking");
    await request.result(request.params["args"] as object);
  });

describe("the client library", () => {
  test("calls a tool", async () => {
    const namespace = newNamespace();
    await using _tool = await serveEcho(namespace);
    await using client = await ToolClient.connect({ broker: node().url, namespace });
    const heard: string[] = [];
    const onStatus = (text: string): void => void heard.push(text);
    const { toolResult } = await client.invoke("echo", { text: "hé" }, { onStatus });
    expect(toolResult).toEqual({ text: "hé" });
    expect(heard).toEqual(["Thinking"]);
  });

  test("learns at once that no worker serves a tool", async () => {
    const namespace = newNamespace();
    await using client = await ToolClient.connect({ broker: node().url, namespace });
    await expect(client.invoke("nobodys")).rejects.toMatchObject({ code: "UNROUTABLE" });
  });

  test("does not try again with a password that is refused, and does not tell it", async () => {
    const broker = node().url.replace("guest:guest", "guest:s3cret");
    const refused = ToolClient.connect({ broker, namespace: newNamespace() });
    await expect(refused).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
      message: expect.not.stringContaining("s3cret") as string,
    });
  });
});

describe("the harness", () => {
  test("invokes a tool by the worker's own variable, as soon as it is served", async () => {
    const namespace = newNamespace();
    const environment = { AMQP_URL: node().url, SAM_NAMESPACE: namespace };
    const args = ["invoke", "--broker", "amqp", "--wait-for-worker", "--tool", "echo"];
    await using cli = new CliRun([...args, "--args", '{"n": 1}'], environment);
    await cli.said("stderr", /Waiting up to 300 s/);
    await using _tool = await serveEcho(namespace);
    const { exitCode, stdout, stderr } = await cli.finished;
    expect({ exitCode, result: JSON.parse(stdout) as unknown }).toEqual({
      exitCode: 0,
      result: { n: 1 },
    });
    expect(stderr).toContain("status: Thinking");
  });

  test(
    "notices a worker that comes while somebody listens to everything",
    { tags: "full" },
    async () => {
      const namespace = newNamespace();
      await using session = await amqpBroker({ url: node().url, namespace }).connect([], never);
      await using listener = await session.subscribe(`${namespace}/>`, never);
      const heard = listener[Symbol.asyncIterator]();
      const args = [
        "invoke",
        "--broker",
        node().url,
        "--namespace",
        namespace,
        "--wait-for-worker",
      ];
      await using cli = new CliRun([...args, "--tool", "echo"]);
      await heard.next();
      await using _tool = await serveEcho(namespace);
      expect((await cli.finished).exitCode).toBe(0);
    },
  );

  test("listens to a call by URL, and shows no password", { tags: "full" }, async () => {
    const namespace = newNamespace();
    await using _tool = await serveEcho(namespace);
    const broker = ["--broker", node().url, "--namespace", namespace];
    await using listener = new CliRun(["listen", `${namespace}/>`, "--json", ...broker]);
    const [said] = await listener.said("stderr", /Listening to .*\n/);
    expect(said).toContain(`on amqp://127.0.0.1:${node().port}`);
    expect(said).not.toContain("guest");
    expect(await runCli(["invoke", "--tool", "echo", ...broker])).toMatchObject({ exitCode: 0 });
    await listener.said("stdout", /sam_remote_tool\/invoke\/echo[^]*\/status\/[^]*\/response\//);
  });

  test("says that no worker serves a tool, with exit code 124", async () => {
    const namespace = newNamespace();
    const broker = ["--broker", node().url, "--namespace", namespace];
    const { exitCode, stderr } = await runCli(["invoke", "--tool", "nobodys", ...broker]);
    expect(exitCode).toBe(124);
    expect(stderr).toContain(
      `The broker has nobody to give the call on ${namespace}/a2a/v1/sam_remote_tool/invoke/nobodys to.`,
    );
  });

  test("does not repeat a password that is refused", { tags: "promise-B1" }, async () => {
    const broker = node().url.replace("guest:guest", "guest:s3cret");
    const { exitCode, stderr } = await runCli(["listen", "--broker", broker]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^error: The broker at .* refused the login of guest/);
    expect(stderr).not.toContain("s3cret");
  });
});
