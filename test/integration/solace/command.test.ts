/**
 * `harness smf-broker`: a broker for the real library, from the command line.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { patience } from "../../support/patience.ts";
import { CliProcess, runCli } from "../harness/cli-process.ts";
import { Peer } from "./peer.ts";

test("serves until a signal, and shows who subscribes and consumes", async () => {
  await using command = new CliProcess(["smf-broker", "--port", "0"]);
  const [, url = ""] = await command.said("stdout", /listens on (tcp:\/\/127\.0\.0\.1:\d+);/);
  await using peer = await Peer.connect(url, { clientName: "a-client" });
  await peer.subscribe("a/>");
  peer.send("a/b", "heard");
  await vi.waitFor(() => expect(peer.heard).toMatchObject([{ body: "heard" }]), patience);
  await peer.provision("q");
  const consumption = await peer.consume("q");
  await consumption.addSubscription("tools/>");
  await command.said("stdout", /^a-client subscribes to a\/>$/m);
  await command.said("stdout", /^a-client consumes from queue q$/m);
  await command.said("stdout", /^queue q of a-client subscribes to tools\/>$/m);
  command.child.kill("SIGTERM");
  expect((await command.finished).exitCode).toBe(0);
});

test("serves WebSockets beside TCP where it is told a port for them", async () => {
  await using command = new CliProcess(["smf-broker", "--port", "0", "--ws-port", "0"]);
  const [, url = "", webUrl = ""] = await command.said(
    "stdout",
    /listens on (tcp:\/\/127\.0\.0\.1:\d+) and (ws:\/\/127\.0\.0\.1:\d+);/,
  );
  await using one = await Peer.connect(url);
  await using other = await Peer.connect(webUrl);
  await one.subscribe("a/>");
  other.send("a/b", "heard");
  await vi.waitFor(() => expect(one.heard).toMatchObject([{ body: "heard" }]), patience);
});

test("says so when it cannot have the port for WebSockets", async () => {
  await using other = await startSmfBroker();
  const result = await runCli(["smf-broker", "--port", "0", "--ws-port", `${other.port}`]);
  expect(result).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(`cannot listen on 127.0.0.1:0 or ${other.port}: EADDRINUSE`),
  });
});

test.each([
  ["one of certificate and key", ["--tls-cert", "x.pem"], 2, /need each other/],
  [
    "a certificate that is not there",
    ["--tls-cert", "/nonexistent/x.pem", "--tls-key", "/nonexistent/x.key"],
    1,
    /cannot read \/nonexistent\/x\.pem: ENOENT/,
  ],
] as const)("refuses %s", async (_, args, exitCode, says) => {
  const result = await runCli(["smf-broker", "--port", "0", ...args]);
  expect(result).toMatchObject({ exitCode, stderr: expect.stringMatching(says) });
});

test("says so when a certificate is none", async () => {
  const directory = await mkdtemp(join(tmpdir(), "smf-command-"));
  try {
    const path = join(directory, "x.pem");
    await writeFile(path, "no PEM");
    const result = await runCli([
      "smf-broker",
      "--port",
      "0",
      "--tls-cert",
      path,
      "--tls-key",
      path,
    ]);
    expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/^error: cannot /) });
  } finally {
    await rm(directory, { recursive: true });
  }
});
