/**
 * `harness tool run --network learn`: what a tool reaches meanwhile, and what is said of it.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { withNetwork } from "../../../../harness/network/learn.ts";
import { learnedNetwork } from "../../../../harness/network/learned-list.ts";
import { observed } from "../../../../harness/tool/debug/observed-backend.ts";
import { Egress } from "../../../../worker/egress/fabric.ts";
import { WorkerEndpoints } from "../../../../worker/egress/resolve.ts";
import { networkField, toNetwork } from "../../../../worker/protocol/network-rules.ts";
import type { EndedConnection } from "../../../../worker/sandbox/network/sockets.ts";
import { restrictiveProfile } from "../../../../worker/sandbox/profile.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { openNetworkPlace } from "../../../support/sandboxes/network-place.ts";
import { CliRun } from "../cli-process.ts";

const never = AbortSignal.any([]);

/** The operator has not allowed the credential, which the run does without. */
const manifest = `
version: 1
credentials:
  key: { query: key, value: "env:NO_SUCH_VARIABLE", hosts: [api.example.com] }
tools:
  connects:
    module: m
    function: connects
    sandbox_profile: restrictive
    network: { allow: [{ host: api.example.com, credential: key }] }
`;

const module = `
import socket

def connects(host, ports):
    for port in ports:
        try:
            socket.create_connection((host, port), timeout=10).recv(1)
        except OSError as error:
            print(type(error).__name__)
    return {}
`;

test(
  "says what it refuses all the same, and what an entry would have to say",
  { tags: "full" },
  async () => {
    const directory = await mkdtemp(join(tmpdir(), "str-learn-test-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(join(directory, "m.py"), module);
    await writeFile(join(directory, "manifest.yaml"), manifest);
    const args = JSON.stringify({ host: "127.0.0.1", ports: [5432, 5432] });
    const call = ["tool", "run", directory, "--args", args];
    await using cli = new CliRun([...call, "--network", "learn", "--json"]);
    const { stdout, stderr, exitCode } = await cli.finished;
    expect(exitCode).toBe(0);
    expect(stderr.split("\n")).toEqual(
      expect.arrayContaining([
        "refused: 127.0.0.1:5432, not-public; it takes { host: 127.0.0.1, ports: [5432], private: true }",
        "Apart from what was refused, this run would have needed in the tool's manifest entry:",
        "network: none",
      ]),
    );
    // Agents get the same facts.
    expect(JSON.parse(stdout)).toHaveProperty("result.execution.network", {
      ...{ connections: 2, sent_bytes: 0, received_bytes: 0, refused: 2 },
      refusals: [{ host: "127.0.0.1", port: 5432, reason: "not-public" }],
    });
  },
);

test("a sandbox gets its network in place of the profile's, and shows its connections", async () => {
  const server = createServer((socket) => socket.end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await using place = await openNetworkPlace();
  const resolve = () => Promise.resolve(["127.0.0.1"]);
  const egress = await Egress.open({
    ...{ scratchDir: place.backend.scratchDir, resolve, clock: systemClock },
    endpoints: new WorkerEndpoints([], systemClock, resolve),
  });
  const allow = [{ host: "*.example.com", ports: [port], private: true }];
  const network = toNetwork(networkField.parse({ allow }));
  if (typeof network === "string") throw new Error(network);
  const connections: EndedConnection[] = [];
  const backend = observed(
    withNetwork(place.backend, network, (profile) => egress.networkOf(profile)),
    {
      onOutput: () => undefined,
      onEnd: () => Promise.resolve(),
      onConnection: (connection) => connections.push(connection),
    },
  );
  const environment = new Map([
    ["PATH", "/usr/bin:/bin"],
    ["SSL_CERT_FILE", "/of/its/network"],
  ]);
  const others = { files: new Map(), environment: new Map([["SSL_CERT_FILE", "/of/its/network"]]) };
  const sandbox = await backend.acquire(
    {
      ...{ profile: restrictiveProfile, memoryBound: "address-space", mounts: [], devices: [] },
      environment,
      network: { ...others, open: () => Promise.reject(new Error("it is another one")) },
    },
    never,
  );
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  const program = `
import os, socket
print("SSL_CERT_FILE" in os.environ, end=" ")
print(socket.create_connection(("a.example.com", ${port})).recv(100).decode())`;
  const execution = await sandbox.start({ argv: ["/usr/bin/python3", "-c", program] });
  expect((await execution.exited).stdout.text).toBe("False hello\n");
  expect(learnedNetwork(connections)).toBe(`network:\n  allow:\n    - a.example.com:${port}\n`);
});

test("says nothing of a tool that did not run", async () => {
  await using cli = new CliRun(["tool", "run", "m.py:none", "--network", "learn"]);
  const { stderr, exitCode } = await cli.finished;
  expect(exitCode).not.toBe(0);
  expect(stderr).not.toContain("would have needed");
});
