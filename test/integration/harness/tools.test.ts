/**
 * `harness tools`: what is served, what not and why.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { CliRun } from "./cli-process.ts";
import { startScriptedWorker } from "./scripted-worker.ts";

const manifest = `
version: 1
tools:
  words: {module: words, function: count, description: Counts words}
  weather: {module: words, function: count, package: no-such-package, description: Forecast}
  foreign: {executable: bin/tool}
`;

const packageReason = 'package "no-such-package" is not installed';

async function toolsDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "str-tools-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  await mkdir(join(directory, "python"));
  await writeFile(join(directory, "manifest.yaml"), manifest);
  return directory;
}

test("lists what a worker on this host would serve, with the reason for each that it would not", async () => {
  const directory = await toolsDirectory();
  await using cli = new CliRun(["tools", "--tools", directory], { PACKAGE_POLICY: "check" });
  const { stdout, stderr, exitCode } = await cli.finished;
  expect(stderr).toBe("");
  expect(stdout.split("\n").slice(0, -1)).toEqual([
    "words    served      Counts words",
    expect.stringMatching(/^foreign {2}not served {2}it is an executable/),
    `weather  not served  ${packageReason}. Forecast`,
  ]);
  expect(exitCode).toBe(1);
});

test(
  "asks the workers of a broker, which say why they do not serve a tool",
  { tags: "full" },
  async () => {
    const directory = await toolsDirectory();
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    const topic = "ns/a2a/v1/sam_remote_tool/invoke/";
    const reason = `Tool 'weather' is not available on this worker: ${packageReason}`;
    await using _refusing = await startScriptedWorker(broker.port, `${topic}weather`, (_, reply) =>
      reply.error("TOOL_NOT_AVAILABLE", reason),
    );
    await using _serving = await startScriptedWorker(broker.port, `${topic}words`, (_, reply) =>
      reply.error("INVALID_REQUEST", "Invalid request: params.task_id: missing"),
    );
    const address = ["--broker", `127.0.0.1:${broker.port}`, "--namespace", "ns", "--timeout", "5"];
    await using cli = new CliRun(["tools", "--json", "--tools", directory, ...address], {
      PACKAGE_POLICY: "check",
    });
    const { stdout, exitCode } = await cli.finished;
    const rows = stdout.split("\n").slice(0, -1);
    expect(rows.map((row): unknown => JSON.parse(row))).toEqual([
      { tool: "words", description: "Counts words", state: "served" },
      { tool: "weather", description: "Forecast", state: "not served", reason },
      { tool: "foreign", state: "no answer", reason: `no worker answers on ${topic}foreign` },
    ]);
    expect(exitCode).toBe(1);
    await using named = new CliRun(["tools", "--tool", "words", ...address]);
    expect(await named.finished).toMatchObject({ stdout: "words  served\n", exitCode: 0 });
  },
);

test("says that no worker told of a tool, where it listens to a silent broker", async () => {
  const broker = await startDevBroker();
  onTestFinished(() => broker[Symbol.asyncDispose]());
  const address = ["--broker", `127.0.0.1:${broker.port}`];
  await using cli = new CliRun(["tools", "--listen", "1", ...address]);
  const { stdout, exitCode } = await cli.finished;
  expect({ stdout, exitCode }).toEqual({
    stdout: "No worker told of a tool in 1 s.\n",
    exitCode: 0,
  });
});
