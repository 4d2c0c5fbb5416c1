/**
 * The programs of docs/wire.md call a tool as they stand, and what comes to them has the fields
 * that the page says.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import type { Message } from "amqplib";
import solace from "solclientjs";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { startSmfBroker } from "../../harness/fakes/solace/broker.ts";
import { connectOperator, newNamespace, useRabbitMQ } from "../integration/amqp/node.ts";
import { Peer } from "../integration/solace/peer.ts";
import { patience } from "../support/patience.ts";
import { programEnvironment } from "../support/workers/program-environment.ts";
import { pypiPackages } from "../support/pypi-packages.ts";
import { manifestText, reachableDirectory } from "../support/workers/rig.ts";
import { WorkerProcess } from "../support/workers/worker-process.ts";

const run = promisify(execFile);

const page = readFileSync(new URL("../../docs/wire.md", import.meta.url), "utf8");
const tools = fileURLToPath(new URL("../../examples/tools/python/", import.meta.url));

type Environment = Readonly<Record<string, string>>;

/** Starts a worker that serves `echo_tool`; it ends with the test. */
async function startWorker(broker: Environment, namespace: string): Promise<void> {
  const base = await reachableDirectory();
  const manifestPath = join(base, "manifest.yaml");
  const echo = { module: "example_tools", function: "echo_tool" };
  await writeFile(manifestPath, manifestText({ echo_tool: echo }));
  const worker = new WorkerProcess({
    ...broker,
    SAM_NAMESPACE: namespace,
    MANIFEST_PATH: manifestPath,
    TOOLS_PYTHON_DIR: tools,
    SANDBOX_WORK_DIR: join(base, "work"),
    SANDBOX_MIN_FREE_DISK_MB: "1",
    HEALTH_PORT: "0",
    // What is heard are the messages of one call.
    TOOLS_DISCOVERY: "0",
  });
  onTestFinished(async () => {
    await worker[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
  });
  await worker.says("worker.ready");
}

/** Runs the program of the page that imports `module`; returns what it prints. */
async function runProgram(
  context: TestContext,
  module: string,
  requirement: string,
  environment: Environment,
  args: readonly string[],
): Promise<string> {
  const packages = await pypiPackages(context, [requirement]);
  const programs = Array.from(page.matchAll(/^```python\n(.*?)^```$/gms), ([, text]) => text!);
  const [program = ""] = programs.filter((text) => text.includes(`import ${module}`));
  const { stdout } = await run("/usr/bin/python3", ["-c", program, ...args], {
    env: { ...programEnvironment(), PYTHONPATH: packages, ...environment },
    timeout: 120_000,
  });
  return stdout;
}

const call = ["echo_tool", '{"message": "grüezi"}'];
const printed = "status: Echoing message...\n{'status': 'success', 'echoed_message': 'grüezi'}\n";

/** What the parts of a namespace's topics are that end with the id of a call. */
const kindOf = (topic: string): string => topic.split(/[./]/).at(-3)!;

describe("on RabbitMQ", () => {
  const node = useRabbitMQ();

  test("the program with pika prints status and answer", async (context) => {
    const [namespace, broker] = [newNamespace(), { AMQP_URL: node().url }];
    await startWorker(broker, namespace);
    await using operator = await connectOperator(node().url);
    const heard: Message[] = [];
    const { queue } = await operator.channel.assertQueue("", { exclusive: true });
    await operator.channel.bindQueue(queue, namespace, "#");
    await operator.channel.consume(queue, (message) => void heard.push(message!), { noAck: true });
    const environment = { ...broker, SAM_NAMESPACE: namespace };
    expect(await runProgram(context, "pika", "pika==1.4.4", environment, call)).toBe(printed);
    await vi.waitFor(() => expect(heard).toHaveLength(3), patience);
    const [sent, status, answer] = heard.map(({ fields, properties }) => ({
      kind: kindOf(fields.routingKey),
      ...Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined)),
    }));
    const fields = {
      headers: { timestamp: expect.any(Number) },
      contentType: "application/json",
      deliveryMode: 2,
      messageId: expect.any(String),
    };
    expect(status).toEqual({ kind: "status", ...fields });
    expect(answer).toEqual({
      kind: "response",
      ...fields,
      correlationId: (sent as { correlationId?: string }).correlationId,
    });
  });
});

describe("on Solace", () => {
  test("the program with Solace's own library prints status and answer", async (context) => {
    await using server = await startSmfBroker();
    const [namespace, broker] = ["test/wire", { SOLACE_HOST: server.url }];
    await startWorker(broker, namespace);
    await using peer = await Peer.connect(server.url);
    const heard: solace.Message[] = [];
    peer.session.on(solace.SessionEventCode.MESSAGE, (message) => void heard.push(message));
    await peer.subscribe(`${namespace}/>`);
    const environment = {
      ...broker,
      SOLACE_VPN: "default",
      SOLACE_USERNAME: "agent",
      SOLACE_PASSWORD: "secret",
      SAM_NAMESPACE: namespace,
    };
    const requirement = "solace-pubsubplus==1.11.0";
    expect(await runProgram(context, "MessagingService", requirement, environment, call)).toBe(
      printed,
    );
    await vi.waitFor(() => expect(heard).toHaveLength(3), patience);
    const [sent, ...ours] = heard;
    expect(sent!.isDMQEligible()).toBe(true);
    expect(ours.map((message) => kindOf(message.getDestination()!.getName()))).toEqual([
      "status",
      "response",
    ]);
    for (const message of ours) {
      expect(message.getType()).toBe(solace.MessageType.BINARY);
      expect(message.isDMQEligible()).toBe(true);
      expect(message.getSenderTimestamp()).toEqual(expect.any(Number));
      const properties = message.getUserPropertyMap()!;
      expect(properties.getKeys()).toEqual(["timestamp"]);
      expect(properties.getField("timestamp").getType()).toBe(solace.SDTFieldType.INT64);
      const unset = [
        message.getReplyTo(),
        message.getCorrelationId(),
        message.getApplicationMessageId(),
        message.getApplicationMessageType(),
        message.getSenderId(),
      ];
      expect(unset.filter((value) => value !== undefined && value !== null)).toEqual([]);
    }
  });
});
