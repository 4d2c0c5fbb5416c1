/**
 * Programs in sandboxes with a list, each as it is: with the variables of the proxy, and without.
 * Servers are those of the test.
 *
 * @module-tag full
 */
import { existsSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type TestContext, afterAll, describe, expect, onTestFinished, test } from "vitest";
import { listen } from "../../integration/egress/proxy-server.ts";
import { Authority } from "../../support/brokers/rabbitmq-certificates.ts";
import { createRepository, serveRepositories } from "../../support/egress/git-server.ts";
import { listedSandbox, nodeInside } from "../../support/egress/listed-sandbox.ts";
import { pypiPackages, python } from "../../support/pypi-packages.ts";
import { openNetworkPlace } from "../../support/sandboxes/network-place.ts";
import { shared } from "../../support/shared.ts";

const host = "api.example.com";
const authorityInside = "/sandbox/authority.pem";
const packagesInside = "/sandbox/packages";

const place = shared(async () => {
  await using opened = new AsyncDisposableStack();
  const { backend, base } = opened.use(await openNetworkPlace());
  const authority = await Authority.create(base);
  const { cert, key } = await authority.issue("server", `DNS:${host}`);
  const files = { cert: await readFile(cert), key: await readFile(key) };
  const owned = opened.move();
  const rest = { [Symbol.asyncDispose]: () => owned.disposeAsync() };
  return { backend, base, files, authority: authority.cert, ...rest };
});

const entry = (...ports: readonly number[]) => ({ host, ports, private: true });

/** Variables by which programs trust the authority of the servers. */
const variables = {
  ...{ HOME: "/tmp", CURL_CA_BUNDLE: authorityInside, GIT_SSL_CAINFO: authorityInside },
  ...{ SSL_CERT_FILE: authorityInside, REQUESTS_CA_BUNDLE: authorityInside },
  ...{ NODE_EXTRA_CA_CERTS: authorityInside, PYTHONPATH: packagesInside },
};

const proxyVariables = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const direct = ["/usr/bin/env", ...proxyVariables.flatMap((name) => ["-u", name])];

/** What the program prints in a sandbox with this list, without and with the proxy's variables. */
async function bothWays(
  context: TestContext,
  allow: readonly unknown[],
  argv: readonly string[],
  packages?: string,
): Promise<readonly string[]> {
  const { backend, authority } = await place(context);
  const mounts = [
    { source: authority, target: authorityInside },
    ...(packages === undefined ? [] : [{ source: packages, target: packagesInside }]),
  ];
  const outputs: string[] = [];
  for (const way of [direct, ["/usr/bin/env"]]) {
    const { run, sandbox } = await listedSandbox({ backend }, { allow, variables, mounts });
    const { stdout, stderr } = await run([...way, ...argv]);
    outputs.push(`${stdout}${stderr}`.trim());
    expect(sandbox.networkUsage?.refusals).toEqual([]);
  }
  return outputs;
}

/** Skips the test where the program is not on this machine. */
function requireProgram(context: TestContext, path: string): string {
  context.skip(!existsSync(path), `${path} is not there`);
  return path;
}

const byPython = (program: string) => [python, "-c", program];
const byNode = (program: string) => [nodeInside, "--input-type=module", "-e", program];

const clients: readonly (readonly [what: string, argv: (url: string) => readonly string[]])[] = [
  ["curl", (url) => ["/usr/bin/curl", "-sS", url]],
  [
    "urllib of Python",
    (url) =>
      byPython(`import urllib.request; print(urllib.request.urlopen("${url}").read().decode())`),
  ],
  ["fetch of Node", (url) => byNode(`console.log(await (await fetch("${url}")).text())`)],
  [
    "http and https of Node",
    (url) =>
      byNode(`const { get } = await import("${new URL(url).protocol.slice(0, -1)}");
get("${url}", (answer) => answer.pipe(process.stdout));`),
  ],
];

describe("over HTTP and HTTPS", { tags: "promise-S34" }, () => {
  test.for(clients)("%s gets what it asks for", async ([, argv], context) => {
    const { files } = await place(context);
    requireProgram(context, argv("http://a")[0] === nodeInside ? python : argv("http://a")[0]!);
    const clear = await listen(createHttpServer((_, response) => response.end("clear")));
    const secure = await listen(createHttpsServer(files, (_, response) => response.end("secure")));
    const allow = [entry(clear, secure)];
    const outputs = [
      ...(await bothWays(context, allow, argv(`http://${host}:${clear}/`))),
      ...(await bothWays(context, allow, argv(`https://${host}:${secure}/`))),
    ];
    expect(outputs).toEqual(["clear", "clear", "secure", "secure"]);
  });

  test("requests of Python gets what it asks for", async (context) => {
    const packages = await pypiPackages(context, ["requests"]);
    const { files } = await place(context);
    const port = await listen(createHttpsServer(files, (_, response) => response.end("secure")));
    const program = `import requests; print(requests.get("https://${host}:${port}/").text)`;
    const outputs = await bothWays(context, [entry(port)], byPython(program), packages);
    expect(outputs).toEqual(["secure", "secure"]);
  });

  test("git clones a repository", async (context) => {
    const git = requireProgram(context, "/usr/bin/git");
    const { base, files } = await place(context);
    await createRepository(join(base, "repositories", "one"), "cloned");
    const port = await serveRepositories(join(base, "repositories"), files);
    const clone = `${git} clone -q https://${host}:${port}/one/.git /tmp/one && cat /tmp/one/README`;
    const outputs = await bothWays(context, [entry(port)], ["/bin/sh", "-c", clone]);
    expect(outputs).toEqual(["cloned", "cloned"]);
  });
});

describe("by a credential that it never has", { tags: "promise-S37" }, () => {
  const token = "token-planted-0123456789";
  const authorization = `Basic ${Buffer.from(`git:${token}`).toString("base64")}`;
  const usual = getCACertificates("default");
  afterAll(() => setDefaultCACertificates(usual));

  /** More than git sends or reads in one piece. */
  const blob = randomBytes(2 * 1024 * 1024).toString("base64");
  const work = `set -e
git clone -q "$0" /tmp/one
cd /tmp/one && cat README | wc -c
head -c 2000000 /dev/urandom > more && git add .
git -c user.name=tool -c user.email=tool@example.com commit -qm second
git push -q origin HEAD:refs/heads/$1
git ls-remote origin $1 | cut -f 2
git ls-remote "$0/../../other/.git" 2>&1 | grep -o 'error: [0-9]*'
env | grep -c ${token} || true`;

  test.for([
    ["directly", direct],
    ["through the proxy", ["/usr/bin/env"]],
  ] as const)("git clones and pushes %s", async ([way, prefix], context) => {
    requireProgram(context, "/usr/bin/git");
    const { backend, base, files, authority } = await place(context);
    setDefaultCACertificates([...usual, await readFile(authority, "utf8")]);
    const repositories = join(base, way.replaceAll(" ", "-"));
    await createRepository(join(repositories, "one"), blob);
    await createRepository(join(repositories, "other"), "other");
    const port = await serveRepositories(repositories, files, authorization);
    const { run, sandbox } = await listedSandbox(
      { backend },
      {
        allow: [{ ...entry(port), paths: ["/one/.git/*"], credential: "git" }],
        credentials: { git: { basic: "git", value: "env:TOKEN", hosts: [host] } },
        environment: { TOKEN: token },
        variables: { HOME: "/tmp" },
      },
    );
    const url = `https://${host}:${port}/one/.git`;
    const argv = [...prefix, "/bin/sh", "-c", work, url, "pushed"];
    const { stdout, stderr } = await run(argv);
    expect({ stderr, lines: stdout.trim().split("\n") }).toEqual({
      stderr: "",
      lines: [String(blob.length), "refs/heads/pushed", "error: 403", "0"],
    });
    expect(sandbox.networkUsage?.refusals).toEqual([{ host, port, reason: "request" }]);
  });
});

/** Packets of a MySQL server, which speaks first, and of a PostgreSQL server, which does not. */
const mysqlGreeting = Buffer.from("\x0a8.0.0\0");
const postgresSslRequest = Buffer.from("0000000804d2162f", "hex");

/** An address of this host that only these tests use: databases have ports of their own. */
const databaseAddress = "127.53.61.7";

async function database(port: number, greeting?: Buffer): Promise<void> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    if (greeting !== undefined) socket.write(greeting);
    socket.on("data", (chunk) => {
      const isSslRequest = chunk.equals(postgresSslRequest);
      if (isSslRequest) socket.write("N");
      else socket.end(`rows for ${chunk.toString()}`);
    });
  });
  server.listen(port, databaseAddress);
  await once(server, "listening");
  onTestFinished(() => void server.close());
}

describe("a database on a port of its own", { tags: "promise-S34" }, () => {
  test.for([
    ["speaks first", 3306, mysqlGreeting, ""],
    [
      "is asked for TLS and has none",
      5432,
      undefined,
      "connection.sendall(bytes.fromhex('0000000804d2162f'))",
    ],
  ] as const)("that %s answers Python and Node", async ([, port, greeting, first], context) => {
    await database(port, greeting);
    const { backend } = await place(context);
    const name = "db.internal";
    const allow = [{ host: name, ports: [port], private: true }];
    const resolve = () => Promise.resolve([databaseAddress]);
    const python3 = byPython(`
import socket
with socket.create_connection(("${name}", ${port})) as connection:
    ${first}
    print(connection.recv(100))
    connection.sendall(b"select")
    print(connection.recv(100).decode())`);
    const node = byNode(`
import { once } from "node:events";
import { connect } from "node:net";
const connection = connect(${port}, "${name}");
${first === "" ? "" : `connection.write(Buffer.from("${postgresSslRequest.toString("hex")}", "hex"));`}
const [answer] = await once(connection, "data");
console.log(JSON.stringify(answer.toString("latin1")));
connection.write("select");
console.log(String((await once(connection, "data"))[0]));`);
    for (const argv of [python3, node]) {
      const { run, sandbox } = await listedSandbox({ backend }, { allow, resolve });
      const { stdout, stderr } = await run(argv);
      expect(stderr).toBe("");
      expect(stdout).toContain(greeting === undefined ? "N" : "8.0.0");
      expect(stdout.trim().split("\n").at(-1)).toBe("rows for select");
      expect(sandbox.networkUsage).toMatchObject({ connections: 1, refusals: [] });
    }
  });
});
