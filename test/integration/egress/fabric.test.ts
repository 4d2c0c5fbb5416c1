/**
 * The network of sandboxes that may reach some hosts, with real sandboxes and servers. Names are
 * resolved as the test says.
 */
import { chmod, mkdir, readFile, readdir } from "node:fs/promises";
import { once } from "node:events";
import { type AddressInfo, type Server, createServer } from "node:net";
import { constants, networkInterfaces } from "node:os";
import { createServer as createTlsServer } from "node:tls";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { WorkerEndpoints } from "../../../worker/egress/resolve.ts";
import { Egress } from "../../../worker/egress/fabric.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import type { EndedConnection } from "../../../worker/sandbox/network/sockets.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import type { Sandbox, SandboxRequest } from "../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { Authority } from "../../support/brokers/rabbitmq-certificates.ts";
import { type NetworkPlace, openNetworkPlace } from "../../support/sandboxes/network-place.ts";
import { shared } from "../../support/shared.ts";

const never = AbortSignal.any([]);

const place = shared(() => openNetworkPlace());

/** What names lead to. */
type Hosts = Readonly<Record<string, readonly string[]>>;

interface Options {
  readonly hosts?: Hosts;
  readonly endpoints?: readonly { readonly host: string; readonly port: number }[];
  readonly maxConnections?: number;
  readonly profile?: string;
  readonly writable?: SandboxRequest["writable"];
}

/** A sandbox that may reach what is listed; it ends with the test. */
async function sandboxWith(
  { backend }: Pick<NetworkPlace, "backend">,
  allow: readonly unknown[],
  {
    hosts = {},
    endpoints = [],
    maxConnections,
    profile: name = "standard",
    writable,
  }: Options = {},
): Promise<Sandbox> {
  const resolve = (name: string): Promise<readonly string[]> =>
    hosts[name] === undefined
      ? Promise.reject(new Error("ENOTFOUND"))
      : Promise.resolve(hosts[name]);
  const { scratchDir } = backend;
  const egress = await Egress.open({
    ...{ scratchDir, resolve, clock: systemClock },
    endpoints: new WorkerEndpoints(endpoints, systemClock, resolve),
  });
  const field = { allow, ...(maxConnections !== undefined && { max_connections: maxConnections }) };
  const network = toNetwork(networkField.parse(field));
  const profile = { ...builtInProfiles.get(name)!, network };
  const sandbox = await backend.acquire(
    {
      ...{ profile, memoryBound: "address-space", mounts: [], devices: [] },
      environment: new Map([["PATH", "/usr/bin:/bin"]]),
      network: await egress.networkOf(profile),
      ...(writable !== undefined && { writable }),
    },
    never,
  );
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  return sandbox;
}

const prelude = `
import socket, ssl, sys

def greets(host, port):
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(b"hello")
            print(connection.recv(100).decode() or "nothing")
    except OSError as error:
        print(type(error).__name__)

def tls(host, port, name):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            with context.wrap_socket(connection, server_hostname=name) as secured:
                print(secured.recv(100).decode())
    except OSError as error:
        print("refused")
`;

/** What a program prints that runs in the sandbox, line by line. */
async function runIn(sandbox: Sandbox, program: string): Promise<readonly string[]> {
  const execution = await sandbox.start({ argv: ["/usr/bin/python3", "-c", prelude + program] });
  const { stdout, stderr, exitCode } = await execution.exited;
  expect(stderr.text).toBe("");
  expect(exitCode).toBe(0);
  return stdout.text.trimEnd().split("\n");
}

/** The connections that have ended. */
function endedIn({ connections }: Sandbox): readonly EndedConnection[] {
  const ended: EndedConnection[] = [];
  connections?.follow((connection) => ended.push(connection));
  return ended;
}

/** A server that greets back, or speaks first; it ends with the test. */
async function serve(greeting?: string, address?: string): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    if (greeting !== undefined) socket.end(greeting);
    else socket.on("data", (chunk) => socket.end(`${chunk.toString()} yourself`));
  });
  return listen(server, address);
}

async function listen(server: Server, address = "127.0.0.1"): Promise<number> {
  server.listen(0, address);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe("a sandbox with a list", { tags: "promise-S34" }, () => {
  test("reaches a name of it by name service, on its ports, and no other name", async (context) => {
    const [port, other] = [await serve(), await serve()];
    const allow = [{ host: "api.example.com", ports: [port], private: true }];
    const hosts = { "api.example.com": ["127.0.0.1"], "other.example.com": ["127.0.0.1"] };
    const sandbox = await sandboxWith(await place(context), allow, { hosts });
    const lines = await runIn(
      sandbox,
      `greets("api.example.com", ${port})
greets("api.example.com", ${other})
greets("other.example.com", ${port})
greets("127.0.0.1", ${port})
greets("93.184.215.14", ${port})`,
    );
    expect(lines).toEqual([
      "hello yourself",
      "ConnectionRefusedError",
      "gaierror",
      "ConnectionResetError",
      "ConnectionResetError",
    ]);
    // A program asks for addresses of IPv4 and of IPv6.
    expect(sandbox.networkUsage).toMatchObject({
      refused: 3,
      refusals: [
        { host: "other.example.com", reason: "name-not-allowed" },
        { host: "127.0.0.1", port, reason: "no-rule" },
        { host: "93.184.215.14", port, reason: "no-rule" },
      ],
    });
  });

  test("finds names over TCP as well, its own too, and under a profile that sees /etc", async (context) => {
    const port = await serve();
    const allow = [{ host: "api.example.com", ports: [port], private: true }];
    const hosts = { "api.example.com": ["127.0.0.1"] };
    const program = `
question = bytes.fromhex("0007010000010000000000000361706907657861" "6d706c6503636f6d0000010001")
with socket.create_connection(("127.0.0.1", 53)) as connection:
    connection.sendall(len(question).to_bytes(2, "big") + question)
    print(connection.recv(512)[-4:].hex())
greets("api.example.com", ${port})
print(socket.gethostbyname("sandbox"))`;
    const sandbox = await sandboxWith(await place(context), allow, {
      hosts,
      profile: "permissive",
    });
    expect(await runIn(sandbox, program)).toEqual(["7f400001", "hello yourself", "127.0.0.1"]);
    expect(sandbox.networkUsage?.refusals).toEqual([]);
  });

  test("is not led to an address that is not public, not even beside a public one", async (context) => {
    const port = await serve();
    const allow = ["rebinds.example.com", "metadata.example.com"].map((host) => ({
      host,
      ports: [port],
    }));
    const hosts = {
      "rebinds.example.com": ["93.184.215.14", "127.0.0.1"],
      "metadata.example.com": ["169.254.169.254"],
    };
    const sandbox = await sandboxWith(await place(context), allow, { hosts });
    const lines = await runIn(
      sandbox,
      `greets("rebinds.example.com", ${port})
greets("metadata.example.com", ${port})`,
    );
    expect(lines).toEqual(["ConnectionResetError", "ConnectionResetError"]);
    expect(sandbox.networkUsage?.refusals.map(({ reason }) => reason)).toEqual([
      "not-public",
      "not-public",
    ]);
    expect(endedIn(sandbox)).toMatchObject([
      { name: "rebinds.example.com", port, address: "127.0.0.1", refusal: "not-public" },
      { name: "metadata.example.com", port, address: "169.254.169.254", refusal: "not-public" },
    ]);
  });

  type Reaching = readonly [what: string, hosts: Hosts, reason: string];
  const asItIs: Reaching = [
    "as it is",
    { broker: ["127.0.0.1"], "a.example.com": ["127.0.0.1"] },
    "worker",
  ];
  const otherwise: readonly Reaching[] = [
    ["by another of its addresses", { broker: ["::1"], "a.example.com": ["127.0.0.1"] }, "worker"],
    ["while its name has none", { "a.example.com": ["127.0.0.1"] }, "worker"],
    ["mapped", { broker: ["127.0.0.1"], "a.example.com": ["::ffff:127.0.0.1"] }, "not-public"],
    ["unspecified", { broker: ["127.0.0.1"], "a.example.com": ["0.0.0.0"] }, "not-public"],
  ];
  const neverReaches = async ([, hosts, reason]: Reaching): Promise<void> => {
    await using given = await openNetworkPlace();
    const port = await serve();
    const allow = [{ host: "a.example.com", ports: [port], private: true }];
    const endpoints = [{ host: "broker", port }];
    const sandbox = await sandboxWith(given, allow, { hosts, endpoints });
    const lines = await runIn(sandbox, `greets("a.example.com", ${port})`);
    expect(lines).toEqual(["ConnectionResetError"]);
    expect(sandbox.networkUsage?.refusals).toEqual([{ host: "a.example.com", port, reason }]);
  };
  const broker = "never reaches the worker's broker, whatever the list says: %s";
  test.for([asItIs])(broker, neverReaches);
  test.for(otherwise)(broker, { tags: "full" }, neverReaches);

  test("gets what a server says first, and both ends of a connection end by themselves", async (context) => {
    const port = await serve("220 welcome");
    const allow = [{ host: "127.0.0.1", ports: [port], private: true }];
    const sandbox = await sandboxWith(await place(context), allow);
    const program = `
with socket.create_connection(("127.0.0.1", ${port})) as connection:
    print(connection.recv(100).decode(), connection.recv(100))`;
    expect(await runIn(sandbox, program)).toEqual(["220 welcome b''"]);
  });

  test("reaches a host that has addresses of IPv6 only", async (context) => {
    const hasLoopback = networkInterfaces()["lo"]?.some(({ address }) => address === "::1");
    context.skip(hasLoopback !== true, "this host has no IPv6");
    const port = await serve(undefined, "::1");
    const allow = [{ host: "six.example.com", ports: [port], private: true }];
    const hosts = { "six.example.com": ["::1"] };
    const sandbox = await sandboxWith(await place(context), allow, { hosts });
    const lines = await runIn(sandbox, `greets("six.example.com", ${port})`);
    expect(lines).toEqual(["hello yourself"]);
    expect(endedIn(sandbox)).toMatchObject([{ name: "six.example.com", address: "::1" }]);
  });

  test("reaches services of this host by its address, and has no port of its list for itself", async (context) => {
    const port = await serve();
    const allow = [{ host: "127.0.0.1", ports: [port], private: true }];
    const sandbox = await sandboxWith(await place(context), allow);
    const lines = await runIn(
      sandbox,
      `greets("localhost", ${port})
for free in ${port}, ${port} ^ 1:
    try:
        socket.create_server(("127.0.0.1", free)).close()
        print("listens")
    except OSError as error:
        print(error.errno)`,
    );
    expect(lines).toEqual(["hello yourself", String(constants.errno.EADDRINUSE), "listens"]);
  });

  test("has so many connections at once, and no more", async (context) => {
    const port = await serve();
    const allow = [{ host: "127.0.0.1", ports: [port], private: true }];
    const sandbox = await sandboxWith(await place(context), allow, { maxConnections: 2 });
    const program = `
held = [socket.create_connection(("127.0.0.1", ${port})) for _ in range(2)]
greets("127.0.0.1", ${port})
held[0].sendall(b"one")
print(held[0].recv(100).decode())`;
    expect(await runIn(sandbox, program)).toEqual(["ConnectionResetError", "one yourself"]);
    expect(sandbox.networkUsage?.refusals).toMatchObject([{ reason: "too-many-connections" }]);
  });
});

describe("TLS of a sandbox with a list", { tags: "promise-S34" }, () => {
  test("names the host of the connection, or is refused, unless the entry allows any", async (context) => {
    const { base, backend } = await place(context);
    const authority = await Authority.create(base);
    const { cert, key } = await authority.issue("server", "DNS:a.example.com");
    const files = { cert: await readFile(cert), key: await readFile(key) };
    const port = await listen(createTlsServer(files, (socket) => socket.end("secret")));
    const hosts = { "a.example.com": ["127.0.0.1"], "any.example.com": ["127.0.0.1"] };
    const allow = [
      { host: "a.example.com", ports: [port], private: true },
      { host: "any.example.com", ports: [port], private: true, sni: "any" },
    ];
    const sandbox = await sandboxWith({ backend }, allow, { hosts });
    const lines = await runIn(
      sandbox,
      `tls("a.example.com", ${port}, "a.example.com")
tls("a.example.com", ${port}, "A.EXAMPLE.com")
tls("a.example.com", ${port}, "fronted.example.com")
tls("a.example.com", ${port}, None)
tls("any.example.com", ${port}, "fronted.example.com")`,
    );
    expect(lines).toEqual(["secret", "secret", "refused", "refused", "secret"]);
    expect(sandbox.networkUsage?.refusals).toEqual([
      { host: "a.example.com", port, reason: "sni" },
    ]);
    const [allowed, , fronted] = endedIn(sandbox);
    const rules = [`{ host: a.example.com, ports: [${port}], private: true }`];
    const connection = { name: "a.example.com", address: "127.0.0.1", port, rules };
    expect(allowed).toMatchObject(connection);
    expect(allowed).not.toHaveProperty("refusal");
    expect(fronted).toMatchObject({ ...connection, refusal: "sni", sentBytes: 0 });
  });
});

describe("a sandbox whose network cannot be made", { tags: "promise-S34" }, () => {
  test("does not start, and says why", async (context) => {
    await using broken = await openNetworkPlace("/usr/bin/false");
    const source = join(broken.base, "out");
    await mkdir(source);
    await chmod(source, 0o777);
    const writable = [{ source, target: "/sandbox/out" }];
    const sandbox = await sandboxWith(broken, ["api.example.com"], { writable });
    const launch = { argv: ["/usr/bin/touch", "/sandbox/out/ran"] };
    await expect(sandbox.start(launch)).rejects.toMatchObject({
      name: "SandboxError",
      isEgress: true,
    });
    await sandbox[Symbol.asyncDispose]();
    expect(await readdir(source)).toEqual([]);
    // The file would be there if it had run.
    const other = await sandboxWith(await place(context), ["api.example.com"], { writable });
    await (
      await other.start(launch)
    ).exited;
    expect(await readdir(source)).toEqual(["ran"]);
  });
});
