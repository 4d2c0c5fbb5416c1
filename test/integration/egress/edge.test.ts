/**
 * Hosts whose connections are opened, with real sandboxes, programs and servers. The worker trusts
 * the authority of the servers as it trusts others.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { type RequestListener, createServer as createClearServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { basename } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { promisify } from "node:util";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import type { EndedConnection } from "../../../worker/sandbox/network/sockets.ts";
import { Authority } from "../../support/brokers/rabbitmq-certificates.ts";
import { listedSandbox, nodeInside } from "../../support/egress/listed-sandbox.ts";
import { openNetworkPlace } from "../../support/sandboxes/network-place.ts";
import { shared } from "../../support/shared.ts";

const secret = "sk-planted-0123456789";

const place = shared(async () => {
  await using opened = new AsyncDisposableStack();
  const { backend, base } = opened.use(await openNetworkPlace());
  const authority = await Authority.create(base);
  const owned = opened.move();
  return { backend, base, authority, [Symbol.asyncDispose]: () => owned.disposeAsync() };
});
type Place = Awaited<ReturnType<typeof place>>;

const usual = getCACertificates("default");
afterAll(() => setDefaultCACertificates(usual));

/** A server, and what it got. */
interface Upstream {
  readonly port: number;
  readonly requests: {
    readonly from: number | undefined;
    readonly line: string;
    readonly headers: string;
    readonly body: string;
  }[];
}

async function listening(make: (listener: RequestListener) => Server): Promise<Upstream> {
  const requests: Upstream["requests"] = [];
  const server = make((request, response) => {
    void request.toArray().then((chunks: Buffer[]) => {
      const body = Buffer.concat(chunks).toString();
      const headers = request.rawHeaders.join("\n");
      const { remotePort: from } = request.socket;
      requests.push({ from, line: `${request.method} ${request.url}`, headers, body });
      response.end(`answer ${requests.length}`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, requests };
}

/** A server with a certificate for these names, by an authority that the worker trusts. */
async function secureServer(
  { authority }: Place,
  names = "DNS:api.example.com",
): Promise<Upstream> {
  setDefaultCACertificates([...usual, await readFile(authority.cert, "utf8")]);
  const { cert, key } = await authority.issue("server", names);
  const files = { cert: await readFile(cert), key: await readFile(key) };
  return listening((listener) => createServer(files, listener));
}

async function clearServer(): Promise<Upstream> {
  return listening((listener) => createClearServer(listener));
}

const hosts = ["api.example.com"];
const bearer = { header: "Authorization: Bearer {value}", value: "env:OTHER", hosts };
const environment = { OTHER: secret };

/** An entry for this server, by TLS unless it has another name. */
const entry = ({ port }: Upstream, rest: object, host = "api.example.com") => ({
  ...{ host, ports: [port], private: true },
  ...rest,
});

const prelude = `
import http.client, os, socket, ssl, sys, urllib.error, urllib.request

def get(url, method="GET", headers={}, context=None):
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as response:
            print(response.status, response.read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode().strip())
    except OSError as error:
        print(type(getattr(error, "reason", error)).__name__)

def raw(port, text):
    context = ssl.create_default_context()
    with socket.create_connection(("api.example.com", port), timeout=20) as connection:
        with context.wrap_socket(connection, server_hostname="api.example.com") as secured:
            secured.sendall(text.encode("latin1"))
            try:
                answer = b"".join(iter(lambda: secured.recv(4096), b""))
            except ConnectionResetError:
                answer = b"reset"
    print(answer.decode().split("\\r\\n")[0] or "nothing")
`;

const python = (program: string): readonly string[] => [
  ...["/usr/bin/python3", "-c", prelude + program],
];

describe("a credential", { tags: "promise-S37" }, () => {
  test("is added to requests of urllib, fetch and curl", async (context) => {
    const given = await place(context);
    const upstream = await secureServer(given);
    const { port, requests } = upstream;
    const { sandbox, run } = await listedSandbox(given, {
      allow: [entry(upstream, { credential: "other" })],
      ...{ credentials: { other: bearer }, environment },
    });
    const url = `https://api.example.com:${port}/v1/x?y=1`;
    const { stdout, stderr } = await run(
      python(`
import subprocess
get("${url}")
sys.stdout.flush()
fetch = 'fetch("${url}").then(async (a) => console.log(a.status, await a.text()))'
subprocess.run(["${nodeInside}", "-e", fetch], check=True)
subprocess.run(["/usr/bin/curl", "-sS", "${url}"], check=True)`),
    );
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n")).toEqual(["200 answer 1", "200 answer 2", "answer 3"]);
    for (const { line, headers, body } of requests) {
      expect([line, body]).toEqual(["GET /v1/x?y=1", ""]);
      expect(headers).toContain(`Authorization\nBearer ${secret}`);
      expect(headers).toContain(`Host\napi.example.com:${port}`);
    }
    expect(sandbox.networkUsage).toMatchObject({ connections: 3, refused: 0, refusals: [] });
    const ended: EndedConnection[] = [];
    sandbox.connections!.follow((connection) => ended.push(connection));
    const rules = [`{ host: api.example.com, ports: [${port}], private: true, credential: other }`];
    const allowed = { name: "api.example.com", address: "127.0.0.1", port, rules };
    expect(ended).toMatchObject([allowed, allowed, allowed]);
    for (const { refusal, sentBytes, receivedBytes } of ended) {
      expect(refusal).toBeUndefined();
      expect(sentBytes).toBeGreaterThan(50);
      expect(receivedBytes).toBeGreaterThan(50);
    }
  });

  test("is nowhere in the sandbox, on the disk of the worker or in its record", async (context) => {
    const given = await place(context);
    const upstream = await secureServer(given);
    const control = "sk-planted-9876543210";
    const { sandbox, run } = await listedSandbox(given, {
      allow: [entry(upstream, { credential: "other" })],
      credentials: { other: bearer },
      environment,
      variables: { CONTROL: control },
    });
    const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
    const { stdout, stderr } = await run(
      python(`
import hashlib, re
open("/tmp/control", "w").write(os.environ["CONTROL"])
get("https://api.example.com:${upstream.port}/")
places = {}
def look(place, data):
    for match in re.finditer(b"sk-planted-", data):
        text = data[match.start():match.start() + ${secret.length}]
        places.setdefault(hashlib.sha256(text).hexdigest(), set()).add(place)
def read(path, place):
    try:
        with open(path, "rb") as file: look(place, file.read(64 * 1024 * 1024))
    except OSError: pass
for process in filter(str.isdigit, os.listdir("/proc")):
    read(f"/proc/{process}/environ", "environment"), read(f"/proc/{process}/cmdline", "command")
for top in ("/sandbox", "/tmp", "/etc", "/run", "/opt", "/dev/shm", "/var"):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path): read(path, "file")
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.readlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if "r" not in line.split()[1] or end - start > 256 * 1024 * 1024: continue
        try:
            memory.seek(start)
            look("memory", memory.read(end - start))
        except (OSError, ValueError, OverflowError): pass
print(sorted(places.get("${hash(control)}", [])), sorted(places.get("${hash(secret)}", [])))`),
    );
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n")).toEqual([
      "200 answer 1",
      "['environment', 'file', 'memory'] []",
    ]);
    expect(upstream.requests[0]!.headers).toContain(secret);
    const ended: EndedConnection[] = [];
    sandbox.connections!.follow((connection) => ended.push(connection));
    expect(ended).toHaveLength(1);
    expect(JSON.stringify([sandbox.networkUsage, ended])).not.toContain(secret);
    const found = async (text: string): Promise<boolean> =>
      await promisify(execFile)("/usr/bin/grep", ["-rqa", text, given.base]).then(
        () => true,
        () => false,
      );
    expect(await found("BEGIN CERTIFICATE")).toBe(true);
    expect(await found(secret)).toBe(false);
    // Only the server of the test has its key on the disk, and the authority that issued it.
    const { stdout: keys } = await promisify(execFile)("/usr/bin/grep", [
      ...["-rla", "PRIVATE KEY", given.base],
    ]);
    expect(
      keys
        .trim()
        .split("\n")
        .map((path) => basename(path))
        .toSorted(),
    ).toEqual(["ca.key", "server.key"]);
  });

  test("goes as Basic, as a parameter, and in place of its placeholder in headers alone", async (context) => {
    const given = await place(context);
    const upstream = await secureServer(given, "DNS:*.example.com");
    const { port, requests } = upstream;
    const value = { value: "env:OTHER", hosts: ["*.example.com"] };
    const { run } = await listedSandbox(given, {
      allow: ["basic", "query", "placeholder"].map((name) =>
        entry(upstream, { credential: name }, `${name}.example.com`),
      ),
      credentials: {
        basic: { basic: "alice", ...value },
        query: { query: "key", ...value },
        placeholder: { placeholder: "TOKEN", ...value },
      },
      environment,
    });
    const { stdout } = await run(
      python(`
get("https://basic.example.com:${port}/", headers={"Authorization": "Basic mine"})
get("https://query.example.com:${port}/a?key=mine&b=c")
token = os.environ["TOKEN"]
get(f"https://placeholder.example.com:${port}/{token}", headers={"X-Key": f"k {token}"})
get(f"https://basic.example.com:${port}/", headers={"X-Key": f"k {token}"})
print(token)`),
    );
    const lines = stdout.trim().split("\n");
    expect(lines.slice(0, 4)).toEqual([1, 2, 3, 4].map((number) => `200 answer ${number}`));
    const [basic, query, placeholder, other] = requests;
    const pair = Buffer.from(`alice:${secret}`).toString("base64");
    expect(basic!.headers).toContain(`Authorization\nBasic ${pair}`);
    expect(basic!.headers).not.toContain("mine");
    expect(query!.line).toBe(`GET /a?b=c&key=${secret}`);
    expect(lines[4]).toMatch(/^placeholder-[0-9a-f]{32}$/);
    expect(placeholder!.headers).toContain(`X-Key\nk ${secret}`);
    expect(placeholder!.line).toBe(`GET /${lines[4]}`);
    expect(other!.headers).toContain(`X-Key\nk ${lines[4]}`);
  });

  test("that cannot be read fails the request, and the operator is told", async (context) => {
    const given = await place(context);
    const upstream = await secureServer(given);
    const { port, requests } = upstream;
    const { sandbox, run, complaints } = await listedSandbox(given, {
      allow: [entry(upstream, { credential: "other" })],
      credentials: { other: { ...bearer, value: "file:/run/none/secret" } },
    });
    const { stdout } = await run(python(`get("https://api.example.com:${port}/")`));
    expect(stdout.trim()).toBe(
      `502 api.example.com:${port}: the credential of this host cannot be used (credential)`,
    );
    expect(requests).toEqual([]);
    expect(sandbox.networkUsage?.refusals).toEqual([
      { host: "api.example.com", port, reason: "credential" },
    ]);
    expect(complaints).toEqual(['the credential "other" cannot be used: its value cannot be read']);
  });

  test("is not sent without TLS, nor where the certificate of the host is wrong", async (context) => {
    const given = await place(context);
    const clear = await clearServer();
    const wrong = await secureServer(given, "DNS:other.example.com");
    const { sandbox, run } = await listedSandbox(given, {
      allow: [entry(clear, { credential: "other" }), entry(wrong, { credential: "other" })],
      ...{ credentials: { other: bearer }, environment },
    });
    const argv = python(`
get("http://api.example.com:${clear.port}/")
get("https://api.example.com:${clear.port}/")
get("https://api.example.com:${wrong.port}/")`);
    const { stdout } = await run(argv);
    const code = "ERR_TLS_CERT_ALTNAME_INVALID";
    expect(stdout.trim().split("\n")).toEqual([
      `403 api.example.com:${clear.port}: the network of this tool does not allow it (not-tls)`,
      `502 api.example.com:${clear.port}: the host cannot be used (unreachable)`,
      `502 api.example.com:${wrong.port}: the certificate of this host is not valid (certificate, ${code})`,
    ]);
    setDefaultCACertificates(usual);
    const untrusted = await listedSandbox(given, {
      allow: [entry(wrong, { methods: ["GET"] }, "other.example.com")],
    });
    const answer = await untrusted.run(python(`get("https://other.example.com:${wrong.port}/")`));
    expect(answer.stdout).toMatch(/^502 other\.example\.com:\d+: .* \(certificate, [A-Z_]+\)$/m);
    expect([...clear.requests, ...wrong.requests]).toEqual([]);
    expect(sandbox.networkUsage?.refusals.map(({ reason }) => reason)).toEqual([
      ...["not-tls", "unreachable", "certificate"],
    ]);
  });
});

describe("methods and paths", { tags: "promise-S37" }, () => {
  test("hold by TLS and without, and a host without them is not opened", async (context) => {
    const given = await place(context);
    const [secure, clear] = [await secureServer(given), await clearServer()];
    const plain = await secureServer(given);
    const rules = { methods: ["GET", "POST"], paths: ["/v1/*"] };
    const { sandbox, run } = await listedSandbox(given, {
      allow: [entry(secure, rules), entry(clear, rules), entry(plain, {})],
    });
    const { stdout, stderr } = await run(
      python(`
for url in ("https://api.example.com:${secure.port}", "http://api.example.com:${clear.port}"):
    get(url + "/v1/a?b=c")
    get(url + "/v1/a", method="DELETE")
    get(url + "/admin")
    get(url + "/v1/%2e%2e/admin")
# The certificate is the host's own, which nothing inside trusts.
get("https://api.example.com:${plain.port}/")
connection = http.client.HTTPConnection("api.example.com", ${clear.port}, timeout=10)
chunked = {"Transfer-Encoding": "chunked"}
for body, headers in ((b"one", {}), (iter([b"t", b"w", b"o"]), chunked)):
    connection.request("POST", "/v1/", body, encode_chunked=True, headers=headers)
    print(connection.getresponse().read().decode())`),
    );
    expect(stderr).toBe("");
    const refused = ({ port }: Upstream): string =>
      `403 api.example.com:${port}: the network of this tool does not allow this request (request)`;
    expect(stdout.trim().split("\n")).toEqual([
      "200 answer 1",
      ...[refused(secure), refused(secure), refused(secure)],
      "200 answer 1",
      ...[refused(clear), refused(clear), refused(clear)],
      "SSLCertVerificationError",
      ...["answer 2", "answer 3"],
    ]);
    expect(secure.requests).toMatchObject([{ line: "GET /v1/a?b=c" }]);
    expect(clear.requests).toMatchObject([
      { line: "GET /v1/a?b=c" },
      { body: "one" },
      { body: "two" },
    ]);
    // Both on one connection of the tool, and so of the worker.
    expect(clear.requests[1]!.from).toBe(clear.requests[2]!.from);
    expect(sandbox.networkUsage).toMatchObject({ refused: 6 });
  });

  test("are kept by requests that are written to get around them", async (context) => {
    const given = await place(context);
    const upstream = await secureServer(given, "DNS:api.example.com, DNS:other.example.com");
    const { port, requests } = upstream;
    const { run } = await listedSandbox(given, {
      allow: [entry(upstream, { paths: ["/v1/*"], credential: "other" })],
      // Fewer than this test makes, one after the other.
      maxConnections: 5,
      ...{ credentials: { other: bearer }, environment },
    });
    const host = `Host: api.example.com:${port}\\r\\n`;
    const end = "Connection: close\\r\\n\\r\\n";
    const tries: readonly (readonly [request: string, answer: string])[] = [
      [`GET /v1/ HTTP/1.1\\r\\n${host}${end}`, "HTTP/1.1 200 OK"],
      [
        `GET /v1/ HTTP/1.1\\r\\nHost: other.example.com\\r\\n${end}`,
        "HTTP/1.1 403 Forbidden (request)",
      ],
      [
        `GET /v1/ HTTP/1.1\\r\\nHost: api.example.com:1\\r\\n${end}`,
        "HTTP/1.1 403 Forbidden (request)",
      ],
      [`GET /v1/ HTTP/1.1\\r\\n${host}${host}${end}`, "HTTP/1.1 403 Forbidden (request)"],
      [`GET /v1/ HTTP/1.1\\r\\n${end}`, "HTTP/1.1 400 Bad Request"],
      [
        `GET https://other.example.com/v1/ HTTP/1.1\\r\\n${host}${end}`,
        "HTTP/1.1 403 Forbidden (request)",
      ],
      [
        `GET /v1/ HTTP/1.1\\r\\n${host}Content-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n${end}0\\r\\n\\r\\n`,
        "HTTP/1.1 400 Bad Request",
      ],
      [
        `POST /v1/ HTTP/1.1\\r\\n${host}Transfer-Encoding: gzip, chunked\\r\\n${end}0\\r\\n\\r\\n`,
        "HTTP/1.1 403 Forbidden (request)",
      ],
      [
        `GET /v1/ HTTP/1.1\\r\\n${host}X-Original-URL: /admin\\r\\n${end}`,
        "HTTP/1.1 403 Forbidden (request)",
      ],
      [`GET /v1/ HTTP/2.0\\r\\n${host}${end}`, "HTTP/1.1 403 Forbidden (request)"],
      [
        `GET /v1/ HTTP/1.1\\r\\n${host}Transfer-Encoding : chunked\\r\\n${end}`,
        "HTTP/1.1 400 Bad Request",
      ],
      [
        `GET /v1/ HTTP/1.1\\r\\n${host}X: ${"x".repeat(40_000)}\\r\\n${end}`,
        expect.stringMatching(/^HTTP\/1.1 431|^nothing$/) as string,
      ],
      [`CONNECT other.example.com:443 HTTP/1.1\\r\\n${host}\\r\\n`, "nothing"],
    ];
    const program = tries.map(([request]) => `raw(${port}, "${request}")`).join("\n");
    const atOnce = `GET /v1/ HTTP/1.1\\r\\n${host}\\r\\nGET /v1/ HTTP/1.1\\r\\n${host}${end}`;
    const { stdout, stderr } = await run(python(`${program}\nraw(${port}, "${atOnce}")`));
    expect(stderr).toBe("");
    const lines = stdout.trim().split("\n");
    expect(lines.slice(0, -1)).toEqual(tries.map(([, answer]) => answer));
    expect(requests.filter(({ line }) => line !== "GET /v1/")).toEqual([]);
    // That of the first line, and perhaps one of the two that were sent at once.
    expect(requests.length).toBeLessThanOrEqual(2);
    expect(requests.filter(({ headers }) => headers.includes("other.example"))).toEqual([]);
  });

  test("need a program that accepts the worker's certificate, which the record says", async (context) => {
    const given = await place(context);
    const upstream = await secureServer(given);
    const { port } = upstream;
    const { sandbox, run } = await listedSandbox(given, {
      allow: [entry(upstream, { methods: ["GET"] })],
    });
    const { stdout } = await run(
      python(`
get("https://api.example.com:${port}/", context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))`),
    );
    expect(stdout.trim()).toBe("SSLCertVerificationError");
    expect(sandbox.networkUsage?.refusals).toEqual([
      { host: "api.example.com", port, reason: "handshake" },
    ]);
  });

  test("end a connection whose headers do not end", { tags: "full" }, async (context) => {
    const given = await place(context);
    const upstream = await secureServer(given);
    const { run } = await listedSandbox(given, {
      allow: [entry(upstream, { methods: ["GET"] })],
    });
    const { stdout } = await run(
      python(`raw(${upstream.port}, "GET / HTTP/1.1\\r\\nHost: api.example.com\\r\\n")`),
    );
    expect(stdout.trim()).toBe("HTTP/1.1 408 Request Timeout");
  });
});
