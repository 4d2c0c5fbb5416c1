/**
 * `harness invoke` and `harness dev-broker` with a broker of their own, and `harness listen` beside
 * them.
 */
import { execFile } from "node:child_process";
import { createServer } from "node:net";
import { once } from "node:events";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { patience } from "../../support/patience.ts";
import { CliProcess, CliRun, runCli } from "./cli-process.ts";
import { startScriptedWorker } from "./scripted-worker.ts";

const timeoutMs = 60_000;
const topic = "ns/a2a/v1/sam_remote_tool/invoke/echo_tool";
const invoke = ["invoke", "--tool", "echo_tool", "--namespace", "ns", "--port", "0"];

/** The port a process said it listens on. */
async function portOf(cli: CliProcess | CliRun, stream: "stdout" | "stderr"): Promise<number> {
  const match = await cli.said(stream, /DevBroker listens on 127\.0\.0\.1:(\d+)/);
  return Number(match[1]);
}

describe("a broker inside harness invoke", { timeout: timeoutMs }, () => {
  test("waits for a worker, then makes the call", async () => {
    await using cli = new CliRun(invoke);
    const port = await portOf(cli, "stderr");
    await cli.said("stderr", /Waiting up to 300 s for a worker that serves echo_tool/);
    await using worker = await startScriptedWorker(port, topic, (_request, reply) =>
      reply.result({ echoed: true }),
    );
    const { exitCode, stdout } = await cli.finished;
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ echoed: true });
    expect(worker.requests).toHaveLength(1);
  });

  test("takes --wait-for-worker for what it does anyway", async () => {
    await using cli = new CliRun([...invoke, "--wait-for-worker"]);
    const port = await portOf(cli, "stderr");
    await using worker = await startScriptedWorker(port, topic, (_request, reply) =>
      reply.result({}),
    );
    expect((await cli.finished).exitCode).toBe(0);
    expect(worker.requests).toHaveLength(1);
  });

  test("prints a command that gives a worker what it needs to match", async () => {
    const environment = {
      ARTIFACT_SERVICE_TYPE: "filesystem",
      ARTIFACT_BASE_PATH: "/tmp/it's here",
    };
    await using cli = new CliRun(invoke, environment);
    const port = await portOf(cli, "stderr");
    const match = await cli.said(
      "stderr",
      /^( {2}SAM_NAMESPACE=[^]*? \\\n) {2}\S*str-worker\.mjs$/m,
    );
    const { stdout } = await promisify(execFile)("sh", ["-c", `${match[1]} env`], { env: {} });
    expect(stdout.split("\n")).toEqual(
      expect.arrayContaining([
        "SAM_NAMESPACE=ns",
        "DEV_BROKER_HOST=127.0.0.1",
        `DEV_BROKER_PORT=${port}`,
        "ARTIFACT_SERVICE_TYPE=filesystem",
        "ARTIFACT_BASE_PATH=/tmp/it's here",
        expect.stringMatching(/^MANIFEST_PATH=\/.*\/examples\/tools\/manifest\.yaml$/),
        expect.stringMatching(/^TOOLS_PYTHON_DIR=\/.*\/examples\/tools\/python$/),
      ]),
    );
  });

  test("says that nobody came, with exit code 124", async () => {
    const { exitCode, stdout, stderr } = await runCli([...invoke, "--timeout", "1"]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 124, stdout: "" });
    expect(stderr).toContain(`No worker subscribed to ${topic} within 1 s.`);
    expect(stderr).toContain("No client subscribed to anything.");
  });

  test(
    "shows whom it saw instead, and finds the namespace that differs",
    { tags: "full" },
    async () => {
      await using cli = new CliRun([...invoke, "--timeout", "3"]);
      const port = await portOf(cli, "stderr");
      const other = "ed_test/a2a/v1/sam_remote_tool/invoke/echo_tool";
      await using _worker = await startScriptedWorker(port, other, () => undefined);
      const { exitCode, stderr } = await cli.finished;
      expect(exitCode).toBe(124);
      expect(stderr).toContain(`No worker subscribed to ${topic} within 3 s.`);
      expect(stderr).toMatch(new RegExp(`\n  scripted-worker-[0-9a-f]+\n    ${other}\n`));
      expect(stderr).toContain('in namespace "ed_test", and this call was for "ns"');
    },
  );

  test("names the port that somebody else listens on, with exit code 1", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    server.on("connection", (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const invoked = await runCli(["invoke", "--tool", "echo_tool", "--port", String(port)]);
    expect(invoked).toMatchObject({
      exitCode: 1,
      stderr: `error: 127.0.0.1:${port} is taken, and not by a DevBroker; --port 0 takes a free port, --broker names another broker\n`,
    });
    expect(await runCli(["dev-broker", "--port", String(port)])).toMatchObject({
      exitCode: 1,
      stderr: `error: cannot listen on 127.0.0.1:${port}: EADDRINUSE; --port 0 takes a free one. If a DevBroker runs there: harness invoke --broker 127.0.0.1:${port}\n`,
    });
  });

  test("ends with 130 on Ctrl-C while it waits", async () => {
    await using cli = new CliProcess(invoke);
    await cli.said("stderr", /Waiting/);
    cli.child.kill("SIGINT");
    expect(await cli.finished).toMatchObject({ exitCode: 130, stdout: "" });
  });
});

describe("harness dev-broker", { timeout: timeoutMs }, () => {
  test("carries messages, shows who subscribes, and ends with 0 on a signal", async () => {
    await using cli = new CliProcess(["dev-broker", "--port", "0"], { SAM_NAMESPACE: "ed_test/" });
    const port = await portOf(cli, "stdout");
    await cli.said("stdout", new RegExp(`SAM_NAMESPACE=ed_test/[^]*DEV_BROKER_PORT=${port} `));
    await using worker = await startScriptedWorker(port, topic, (_request, reply) =>
      reply.result({ ok: true }),
    );
    await cli.said("stdout", new RegExp(`scripted-worker-[0-9a-f]+ subscribes to ${topic}`));
    const args = ["invoke", "--tool", "echo_tool", "--broker", `127.0.0.1:${port}`];
    expect((await runCli(args, { SAM_NAMESPACE: "ns" })).exitCode).toBe(0);
    expect(worker.requests).toHaveLength(1);
    cli.child.kill("SIGTERM");
    expect((await cli.finished).exitCode).toBe(0);
  });
});

describe("harness listen", { timeout: timeoutMs }, () => {
  async function publishTo(port: number): Promise<void> {
    const { signal } = new AbortController();
    const options = { host: "127.0.0.1", port, name: "publisher", patterns: [] };
    await using client = await DevClient.connect(options, signal);
    const payload = Buffer.from('{"value": NaN, "text": "\\u001b[31mred"}');
    await client.publish("other/topic", payload, {}, signal);
    await client.publish("some/topic", payload, { userId: "u", timestamp: 1 }, signal);
  }

  test("prints one line of JSON per message of its pattern, and ends with 0 on Ctrl-C", async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    const args = ["listen", "some/>", "--broker", `127.0.0.1:${broker.port}`, "--json"];
    await using cli = new CliProcess(args);
    await cli.said("stderr", /Listening to some\/>/);
    await publishTo(broker.port);
    await cli.said("stdout", /\n/);
    cli.child.kill("SIGINT");
    const { exitCode, stdout } = await cli.finished;
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      topic: "some/topic",
      properties: { userId: "u", timestamp: "1" },
      payload: { value: null, text: "\u001b[31mred" },
    });
  });

  test("prints topic, properties and payload for people, of every topic unless told", async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    await using cli = new CliRun(["listen", "--broker", `127.0.0.1:${broker.port}`]);
    await cli.said("stderr", /Listening to >/);
    await publishTo(broker.port);
    await cli.said("stdout", /Z other\/topic\n/);
    await cli.said(
      "stdout",
      /Z some\/topic\n {2}userId: "u"\n {2}timestamp: "1"\n {2}\{\n {4}"value"/,
    );
    await cli.said("stdout", /\\u001b\[31mred/);
  });

  test("stops when nobody reads any more", async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    await using cli = new CliProcess(["listen", "--broker", `127.0.0.1:${broker.port}`]);
    await cli.said("stderr", /Listening/);
    cli.child.stdout?.destroy();
    await publishTo(broker.port);
    expect((await cli.finished).exitCode).toBe(0);
  });

  test("says that it lost the connection, and goes on listening over the next one", async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    await using cli = new CliRun(["listen", "--broker", `127.0.0.1:${broker.port}`]);
    await cli.said("stderr", /Listening/);
    const before = listeners(broker);
    broker.dropConnections();
    await cli.said("stderr", /broker connection lost: The connection to the broker .* was lost/);
    await vi.waitFor(() => {
      expect(new Set(listeners(broker)).difference(new Set(before)).size).toBe(1);
    }, patience);
    await publishTo(broker.port);
    await cli.said("stdout", /Z some\/topic\n/);
  });

  test("fails when the broker goes away", async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    await using cli = new CliRun(["listen", "--broker", `127.0.0.1:${broker.port}`]);
    await cli.said("stderr", /Listening/);
    await broker[Symbol.asyncDispose]();
    expect(await cli.finished).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/error: The connection to the broker was lost: /) as string,
    });
  });
});

/** Who listens to everything. */
function listeners(broker: DevBroker): readonly (string | null)[] {
  return broker.subscriptions
    .filter(({ patterns }) => patterns.includes(">"))
    .map(({ clientId }) => clientId);
}
