/**
 * Tools whose manifest entry names the hosts that they may reach, on a whole worker.
 */
import { once } from "node:events";
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { errorCodeFacts } from "../../../worker/protocol/errors.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { knownChildrenOf } from "../../../worker/sandbox/proc/processes.ts";
import { callSteps } from "../../../worker/telemetry/call-follower.ts";
import { secondsBounds } from "../../../worker/telemetry/metrics/histogram.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { isRoot } from "../../support/is-root.ts";
import {
  fetchMetrics,
  fetchMetricsText,
  parseMetrics,
  valuesOf,
} from "../../support/metrics/metrics-page.ts";
import { patience } from "../../support/patience.ts";
import { type AuditFacts, auditLinesOf } from "../../support/workers/audit-lines.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";
import { type Rig, nodeTool, reachableDirectory, startRig } from "../../support/workers/rig.ts";

/** Connects to what it is told, and says what came of it. */
const pythonTool = `
import os
import socket

def greets(host, port):
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(b"hello")
            return {"told": connection.recv(100).decode()}
    except OSError as error:
        return {"refused": type(error).__name__}

def tries_all(places):
    return {"results": [greets(host, port) for host, port in places]}

names = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")

def proxies():
    return {name: os.environ.get(name) for given in names for name in (given, given.lower())}

def trusted():
    certificates = {
        name: open(os.environ[name]).read().count("BEGIN CERTIFICATE")
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
    }
    system = open("/etc/ssl/certs/ca-certificates.crt").read()
    same = system == open(os.environ["SSL_CERT_FILE"]).read()
    return {**certificates, "same": same, "token": os.environ["TOKEN"]}

left_open = []

def leaves_open(host, port):
    connection = socket.create_connection((host, port), timeout=10)
    left_open.append(connection)
    connection.sendall(b"hi")
    return {"told": connection.recv(100).decode()}
`;

const nodeModule = `
import { connect } from "node:net";
import { once } from "node:events";

export async function greets({ host, port }) {
  const socket = connect(port, host);
  try {
    await once(socket, "connect");
    socket.write("hello");
    const [chunk] = await once(socket, "data");
    return { told: chunk.toString() };
  } catch (error) {
    return { refused: error.code };
  } finally {
    socket.destroy();
  }
}
`;

/** What labels other than a tool's name have here. */
const wordsOfMetrics: readonly string[] = [
  ...["allowed", "refused", "sent", "received", "read", "written"],
  ...["ok", ...Object.keys(errorCodeFacts), ...Object.keys(callSteps)],
  ...["accepted", "rejected", "failed", "none"],
  ...["cold", "pool", "template", "default", "filesystem", "served", "unavailable"],
  ...[...builtInProfiles.keys(), ...secondsBounds.map(String), "+Inf"],
];

const sockets = new Set<Socket>();
const elsewhere = "http://elsewhere.example.com:1";

let server: Server;
let other: Server;
let rig: Rig;
let port: number;
let otherPort: number;
let healthPort: number;
let base: string;
let auditPath: string;
/** What a server waits for before it answers. */
let beforeAnswer: () => Promise<void> = () => Promise.resolve();

async function listen(): Promise<Server> {
  // Half open, it leaves the end to the other side.
  const made = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      const isLast = chunk.toString() !== "hi";
      const answer = (): void =>
        void socket[isLast ? "end" : "write"](`${chunk.toString()} yourself`);
      void beforeAnswer().then(answer);
    });
  });
  made.listen(0, "0.0.0.0");
  await once(made, "listening");
  return made;
}

const portOf = (made: Server): number => (made.address() as AddressInfo).port;

beforeAll(async () => {
  [server, other] = [await listen(), await listen()];
  [port, otherPort] = [portOf(server), portOf(other)];
  [healthPort] = (await freePorts(1)) as [number];
  const allow = [{ host: "127.0.0.1", ports: [port], private: true }];
  const opened = [...allow, { host: "api.example.com", credential: "other" }];
  const warm = { min: 1, max: 1 };
  base = await reachableDirectory();
  auditPath = join(base, "audit.log");
  const python = { module: "greeting", function: "greets", network: { allow } };
  rig = await startRig({
    tools: {
      cold: { ...python, start: "cold" },
      pool: { ...python, start: "pool", warm },
      template: { ...python, start: "template", warm },
      node: nodeTool("greeting.js", "greets", { network: { allow }, start: "cold" }),
      ...Object.fromEntries(
        (["cold", "pool", "template"] as const).map((start) => [
          `trusting_${start}`,
          { ...python, function: "trusted", network: { allow: opened }, start, warm },
        ]),
      ),
      lasting: { ...python, function: "leaves_open", start: "pool", warm },
      ...Object.fromEntries(
        (["cold", "pool", "template"] as const).map((start) => [
          `proxied_${start}`,
          {
            ...{ ...python, function: "proxies", start, warm },
            env: ["HTTP_PROXY", "https_proxy", "ALL_PROXY"],
          },
        ]),
      ),
      unlisted: {
        ...{ module: "greeting", function: "proxies", network: "none", start: "cold" },
        env: ["HTTP_PROXY"],
      },
      ...Object.fromEntries(
        ["unallowed", "own"].map((credential) => [
          credential,
          { ...python, network: { allow: [{ host: "api.example.com", credential }] } },
        ]),
      ),
      counted: {
        ...{ ...python, function: "tries_all", start: "cold" },
        network: { allow: [{ host: "127.0.0.1", ports: [port, healthPort], private: true }] },
      },
      public_only: { ...python, network: { allow: [`127.0.0.1:${port}`] } },
    },
    credentials: {
      other: { placeholder: "TOKEN", value: "env:NO_SUCH_VARIABLE", hosts: ["api.example.com"] },
      unallowed: { query: "key", value: "env:HTTP_PROXY", hosts: ["api.example.com"] },
      own: { query: "key", value: `file:${auditPath}`, hosts: ["api.example.com"] },
    },
    files: { "greeting.py": pythonTool },
    nodeFiles: { "greeting.js": nodeModule },
    isWarm: true,
    environment: {
      ...{ HTTP_PROXY: elsewhere, https_proxy: elsewhere, ALL_PROXY: elsewhere },
      ...{ AUDIT_LOG: auditPath, CREDENTIAL_SOURCES: `env:NO_SUCH_VARIABLE,file:${base}` },
      ...{ HEALTH_PORT: String(healthPort), HEALTH_HOST: "127.0.0.1" },
    },
  });
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  server.close();
  other.close();
  for (const socket of sockets) socket.destroy();
  await rm(base, { recursive: true, force: true });
});

/** The lines of the last call of a tool, once it has ended. */
async function linesOf(tool: string): Promise<readonly AuditFacts[]> {
  return vi.waitFor(async () => {
    const lines = auditLinesOf(await readFile(auditPath, "utf8"));
    const call = lines.findLast((line) => line["tool"] === tool)?.["call"];
    const own = lines.filter((line) => line["call"] === call);
    expect(own.at(-1)).toMatchObject({ event: "call.end" });
    return own;
  }, patience);
}

const millis = expect.any(Number) as number;

const networkOf = (answer: object): unknown =>
  (answer as { response: { result: { execution: { network: unknown } } } }).response.result
    .execution.network;

const reachesItsList = async (tool: string): Promise<void> => {
  if (tool === "pool" || tool === "template") await rig.untilWaiting(tool);
  const answer = await rig.call(tool, { host: "127.0.0.1", port });
  expect(answer).toMatchObject({ toolResult: { told: "hello yourself" } });
  expect(networkOf(answer)).toMatchObject({ connections: 1, refused: 0, sent_bytes: 5 });
  const start = tool === "node" ? "cold" : tool;
  expect(answer).toHaveProperty("response.result.execution.start", start);
  const rule = `{ host: 127.0.0.1, ports: [${port}], private: true }`;
  const lines = await linesOf(tool);
  expect(lines.map(({ event }) => event)).toEqual(["call.start", "egress", "call.end"]);
  const { audit, time, worker, call, request, task, agent, ...own } = lines[1]!;
  expect([audit, time, worker, call, request, task, agent]).not.toContain(undefined);
  expect(own).toEqual({
    ...{ event: "egress", tool, user: "user-42", session: "web-1" },
    ...{ address: "127.0.0.1", port, verdict: "allowed", rule },
    ...{ sentBytes: 5, receivedBytes: 14, durationMs: millis },
  });
  // Both listen.
  for (const [host, other] of [
    ["127.0.0.1", otherPort],
    ["127.0.0.2", port],
  ] as const) {
    const refused = await rig.call(tool, { host, port: other });
    expect(refused).toMatchObject({ toolResult: { refused: expect.any(String) as string } });
  }
};
const listed = "a tool reaches what its list names and nothing else, from a start that is %s";
test.for(["pool", "node"])(listed, reachesItsList);
test.for(["cold", "template"])(listed, { tags: "full" }, reachesItsList);

test(
  "a tool with a credential that the operator does not allow is not served",
  { tags: "promise-S39" },
  async () => {
    const problemOf = (name: string): string =>
      `the value of its credential "${name}" is not allowed by CREDENTIAL_SOURCES`;
    expect(await rig.call("unallowed", { host: "127.0.0.1", port })).toMatchObject({
      ...{ kind: "error", code: "TOOL_NOT_AVAILABLE" },
      response: {
        error: { message: expect.stringContaining(problemOf("unallowed")) as string },
      },
    });
    const own = `${auditPath} is a file of the worker's own`;
    expect(loggedFacts(rig.logLines, "tool.not_served")).toMatchObject([
      { tool: "unallowed", reason: `${problemOf("unallowed")}: add env:HTTP_PROXY to it` },
      { tool: "own", reason: `${problemOf("own")}: ${own}` },
    ]);
  },
);

const trusts = async (start: string): Promise<void> => {
  const tool = `trusting_${start}`;
  if (start !== "cold") await rig.untilWaiting(tool);
  const answer = await rig.call(tool, {});
  expect(answer).toHaveProperty("response.result.execution.start", start);
  const { toolResult } = answer as { toolResult: Record<string, unknown> };
  expect(toolResult).toMatchObject({ NODE_EXTRA_CA_CERTS: 1, same: true });
  expect(toolResult["SSL_CERT_FILE"]).toBeGreaterThan(50);
  expect(toolResult["token"]).toMatch(/^placeholder-[0-9a-f]{32}$/);
};
const trusting =
  "a tool with a credential trusts the worker and has a placeholder, from a start that is %s";
test.for(["template"])(trusting, trusts);
test.for(["cold", "pool"])(trusting, { tags: "full" }, trusts);

test(
  "the audit log has a connection that the tool leaves open, before the end of the call",
  { tags: "promise-R9" },
  async () => {
    await rig.untilWaiting("lasting");
    await rig.call("lasting", { host: "127.0.0.1", port });
    const lines = await linesOf("lasting");
    expect(lines.map(({ event }) => event)).toEqual(["call.start", "egress", "call.end"]);
    expect(lines[1]).toMatchObject({ verdict: "allowed", sentBytes: 2, receivedBytes: 11 });
  },
);

const hasVariables = async (start: string): Promise<void> => {
  const tool = `proxied_${start}`;
  if (start !== "cold") await rig.untilWaiting(tool);
  const answer = await rig.call(tool, {});
  expect(answer).toHaveProperty("response.result.execution.start", start);
  const [proxy, without] = ["http://127.0.0.1:3128", "localhost,127.0.0.1,::1,127.0.0.0/8"];
  expect(answer).toHaveProperty("toolResult", {
    ...{ HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy, https_proxy: proxy },
    ...{ NO_PROXY: without, no_proxy: without, ALL_PROXY: elsewhere, all_proxy: null },
  });
};
const proxied =
  "a tool with a list has the variables of its proxy, and others as they are, from a start that is %s";
test.for(["template"])(proxied, hasVariables);
test.for(["cold", "pool"])(proxied, { tags: "full" }, hasVariables);

test("a tool without a list has the variables that its entry passes on", async () => {
  const answer = await rig.call("unlisted", {});
  expect(answer).toMatchObject({
    toolResult: { HTTP_PROXY: elsewhere, http_proxy: null, HTTPS_PROXY: null, NO_PROXY: null },
  });
});

test("an address that is not public is refused without private, and the answer says so", async () => {
  const answer = await rig.call("public_only", { host: "127.0.0.1", port });
  expect(answer).toMatchObject({ toolResult: { refused: "ConnectionResetError" } });
  expect(networkOf(answer)).toMatchObject({
    refused: 1,
    refusals: [{ host: "127.0.0.1", port, reason: "not-public" }],
  });
  const [, line] = await linesOf("public_only");
  expect(line).toMatchObject({
    ...{ address: "127.0.0.1", port, verdict: "refused", reason: "not-public" },
    ...{ rule: `127.0.0.1:${port}`, sentBytes: 0, receivedBytes: 0 },
  });
});

test("sandboxes are entered by a process of their own user, without groups and capabilities", async (context) => {
  if (!isRoot) context.skip("a worker that is not root has one user");
  await rig.call("cold", { host: "127.0.0.1", port });
  const status = await readFile(`/proc/${await doorOf(process.pid)}/status`, "utf8");
  const fieldOf = (name: string): string =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)![1]!;
  const ids = Array<number>(4).fill(rig.config.sandbox.uid).join("\t");
  expect(["Uid", "Gid"].map(fieldOf)).toEqual([ids, ids]);
  expect(fieldOf("Groups").trim()).toBe("");
  for (const kind of ["CapPrm", "CapEff", "CapInh", "CapAmb"])
    expect(fieldOf(kind)).toMatch(/^0+$/);
});

test(
  "a call whose network cannot be made is SANDBOX_FAILED, and says that it was that",
  { tags: "full" },
  async () => {
    process.kill(await doorOf(process.pid), "SIGSTOP");
    const answer = await rig.call("cold", { host: "127.0.0.1", port });
    expect(answer).toMatchObject({
      kind: "error",
      code: "SANDBOX_FAILED",
      response: { error: { data: { reason: "egress" } } },
    });
    // The one that does not answer is replaced.
    const next = await rig.call("cold", { host: "127.0.0.1", port });
    expect(next).toMatchObject({ toolResult: { told: "hello yourself" } });
  },
);

test(
  "the metrics have a tool's connections by verdict, as the audit log has them, and no one's names",
  { tags: ["promise-R14", "promise-S34"] },
  async () => {
    const before = Date.now() / 1000;
    const countedSoFar = async () => valuesOf("counted", await fetchMetrics(healthPort));
    expect(await countedSoFar()).toEqual({});
    const open: unknown[] = [];
    beforeAnswer = async () => {
      const { str_egress_open_connections: count } = await countedSoFar();
      open.push(count);
    };
    const places = [
      ["127.0.0.1", port],
      ["127.0.0.1", port],
      // The worker's own listener, which the list has.
      ["127.0.0.1", healthPort],
      ["secret.attacker.example", 443],
    ];
    const answer = await rig.call("counted", { places });
    const told = { told: "hello yourself" };
    const [reset, unknown] = [{ refused: "ConnectionResetError" }, { refused: "gaierror" }];
    expect(answer).toMatchObject({ toolResult: { results: [told, told, reset, unknown] } });
    expect(networkOf(answer)).toMatchObject({
      refusals: [
        { host: "127.0.0.1", port: healthPort, reason: "worker" },
        { reason: "name-not-allowed" },
      ],
    });
    const all = await linesOf("counted");
    const lines = all.filter(({ event }) => event === "egress");
    const task = all[0]!["task"] as string;
    const names = lines.filter((line) => line["port"] === undefined).length;
    expect(lines).toHaveLength(3 + names);
    const text = await fetchMetricsText(healthPort);
    const counted = Object.entries(valuesOf("counted", parseMetrics(text)));
    const ofNetwork = counted.filter(([name]) => name.startsWith("str_egress_"));
    expect(Object.fromEntries(ofNetwork)).toEqual({
      'str_egress_connections_total{verdict="allowed"}': 2,
      'str_egress_connections_total{verdict="refused"}': 1,
      'str_egress_bytes_total{direction="sent"}': 10,
      'str_egress_bytes_total{direction="received"}': 28,
      str_egress_open_connections: 0,
      str_egress_refused_names_total: names,
      str_egress_refused_requests_total: 0,
    });
    expect(open).toEqual([1, 1]);
    beforeAnswer = () => Promise.resolve();
    const { tools } = JSON.parse(await readFile(rig.manifestPath, "utf8")) as { tools: object };
    for (const [, label, value = ""] of text.matchAll(/(\w+)="(.*?)"/g))
      if (label === "version" || label === "node") expect(value).toMatch(/^\d+\.\d+\.\d+$/);
      else if (label === "revision") expect(value).toMatch(/^[0-9a-f]{12}$/);
      else expect(label === "tool" ? Object.keys(tools) : wordsOfMetrics, label).toContain(value);
    for (const name of ["user-42", "web-1", task, "attacker", "127.0.0.1"])
      expect(text).not.toContain(name);
    expect(parseMetrics(text)["process_start_time_seconds"]).toBeLessThan(before);
  },
);

test(
  "a manifest that changes in the middle of a call neither widens nor narrows its network",
  { tags: "promise-S34" },
  async () => {
    const places = [port, otherPort, port].map((one) => ["127.0.0.1", one]);
    let hasChanged = false;
    beforeAnswer = async () => {
      if (hasChanged) return;
      hasChanged = true;
      const loaded = loggedFacts(rig.logLines, "manifest.loaded").length;
      const text = await readFile(rig.manifestPath, "utf8");
      const manifest = JSON.parse(text) as { tools: Record<string, object> };
      const allow = [{ host: "127.0.0.1", ports: [otherPort], private: true }];
      const counted = { ...manifest.tools["counted"], network: { allow } };
      const tools = { ...manifest.tools, counted };
      await writeFile(rig.manifestPath, JSON.stringify({ ...manifest, tools }));
      await vi.waitFor(
        () => expect(loggedFacts(rig.logLines, "manifest.loaded").length).toBeGreaterThan(loaded),
        patience,
      );
    };
    const told = { told: "hello yourself" };
    const refused = { refused: "ConnectionRefusedError" };
    const during = await rig.call("counted", { places });
    expect(during).toMatchObject({ toolResult: { results: [told, refused, told] } });
    const after = await rig.call("counted", { places });
    expect(after).toMatchObject({ toolResult: { results: [refused, told, refused] } });
  },
);

test("a tool that leaves the manifest leaves the metrics", async () => {
  const manifest = JSON.parse(await readFile(rig.manifestPath, "utf8")) as { tools: object };
  const { counted: _, ...tools } = manifest.tools as Record<string, unknown>;
  await rig.call("counted", { places: [] });
  await rig.call("cold", { host: "127.0.0.1", port });
  expect(valuesOf("counted", await fetchMetrics(healthPort))).not.toEqual({});
  await writeFile(rig.manifestPath, JSON.stringify({ ...manifest, tools }));
  await vi.waitFor(async () => {
    const values = await fetchMetrics(healthPort);
    expect(valuesOf("counted", values)).toEqual({});
    expect(valuesOf("cold", values)).not.toEqual({});
  }, patience);
});

/** The program of this worker that enters sandboxes. */
async function doorOf(worker: number): Promise<number> {
  for (const child of knownChildrenOf(worker)) {
    const command = await readFile(`/proc/${child}/cmdline`, "utf8");
    if (command.includes("The door:")) return child;
  }
  throw new Error("there is no such program");
}
