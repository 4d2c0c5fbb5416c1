/**
 * `harness console` and `harness demo --console`: a worker with a page, by a link.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { ConsoleClient, ask } from "../../support/console/console-client.ts";
import { patience } from "../../support/patience.ts";
import { CliProcess } from "./cli-process.ts";

/** Starts a command that prints a link, and opens it. */
async function open(args: readonly string[], environment = {}) {
  const home = await createPassableDirectory("str-console-test-");
  onTestFinished(() => home[Symbol.asyncDispose]());
  const cli = new CliProcess(args, { TMPDIR: home.path, ...environment }, { isGroup: true });
  const [, port = "", token = ""] = await cli.said(
    "stdout",
    /Console: http:\/\/127\.0\.0\.1:(\d+)\/#token=([\w-]{32})\n/,
  );
  const client = await vi.waitFor(() => ConsoleClient.open(Number(port), token), {
    ...patience,
    timeout: 60_000,
  });
  return { cli, client };
}

describe("harness console", { tags: "full" }, () => {
  test("serves tools and shows them, until Ctrl-C", async () => {
    const [port] = (await freePorts(1)) as [number];
    const { cli, client } = await open(["console", "--port", "0", "--console-port", String(port)]);
    await using _cli = cli;
    expect(client.port).toBe(port);
    const id = await client.call({ tool: "echo_tool", arguments: { message: "hello" } });
    await vi.waitFor(async () => {
      const { answer } = await client.detail(id);
      expect(answer).toMatchObject({ result: { tool_result: { echoed_message: "hello" } } });
    }, patience);
    const page = await ask(port, { path: "/" });
    expect(page.body.toString()).toContain("<title>");
    process.kill(-(cli.child.pid ?? NaN), "SIGINT");
    expect((await cli.finished).exitCode).toBe(0);
  });
});

describe("harness demo --console", { tags: "full" }, () => {
  test("shows the calls of the demo, until Ctrl-C", async () => {
    const { cli, client } = await open(["demo", "--console"]);
    await using _cli = cli;
    expect(cli.output).toContain("8 of 8 calls ended as they should");
    const reading = new AbortController();
    for await (const { name, data } of client.events(reading.signal)) {
      if (name !== "calls") continue;
      expect(data).toContainEqual(expect.objectContaining({ tool: "process_file", outcome: "ok" }));
      expect(data).toContainEqual(expect.objectContaining({ outcome: "TOOL_ERROR" }));
      break;
    }
    reading.abort();
    process.kill(-(cli.child.pid ?? NaN), "SIGINT");
    expect((await cli.finished).exitCode).toBe(0);
  });
});
