/**
 * Hosts whose connections are opened, with real sandboxes, programs and servers. The worker trusts
 * the authority of the servers as it trusts others.
 */
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { type RequestListener, createServer as createClearServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { Authority } from "../../support/brokers/rabbitmq-certificates.ts";
import { listedSandbox, nodeInside } from "../../support/sandboxes/listed-sandbox.ts";
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
  readonly requests: { readonly line: string; readonly headers: string; readonly body: string }[];
}

async function listening(make: (listener: RequestListener) => Server): Promise<Upstream> {
  const requests: Upstream["requests"] = [];
  const server = make((request, response) => {
    void request.toArray().then((chunks: Buffer[]) => {
      const body = Buffer.concat(chunks).toString();
      const headers = request.rawHeaders.join("\n");
      requests.push({ line: `${request.method} ${request.url}`, headers, body });
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

const hosts = ["api.example.com"];
const bearer = { header: "Authorization: Bearer {value}", value: "env:OTHER", hosts };
const environment = { OTHER: secret };

const urllib = (url: string, rest = ""): readonly string[] => [
  "/usr/bin/python3",
  "-c",
  `
import sys, urllib.error, urllib.request
try:
    request = urllib.request.Request(${JSON.stringify(url)}${rest})
    print(urllib.request.urlopen(request, timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except urllib.error.URLError as error:
    print(type(error.reason).__name__, error.reason)`,
];

const clients: readonly (readonly [string, (url: string) => readonly string[]])[] = [
  ["urllib", (url) => urllib(url)],
  [
    "fetch",
    (url) => [nodeInside, "-e", `fetch("${url}").then(async (a) => console.log(await a.text()))`],
  ],
  ["curl", (url) => ["/usr/bin/curl", "-sS", url]],
];

/** Prints where a text is: environments, command lines and memory of processes, and files. */
const search = `
import os, sys
needle = "".join(reversed(sys.argv[1])).encode()
found = []
def look(path):
    try:
        with open(path, "rb") as file:
            if needle in file.read(32 * 1024 * 1024): found.append(path)
    except OSError:
        pass
for process in filter(str.isdigit, os.listdir("/proc")):
    look(f"/proc/{process}/environ"), look(f"/proc/{process}/cmdline")
for top in ("/sandbox", "/tmp", "/etc", "/run", "/opt", "/dev/shm", "/var"):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path): look(path)
print(sorted(found))
print(sorted(name for name in os.environ if needle.decode() in os.environ[name]))
`;

describe("a credential", { tags: "promise-S37" }, () => {
  test.each(clients)(
    "is added to requests of %s, and the sandbox never has it",
    async (_name, argv, context) => {
      const given = await place(context);
      const { port, requests } = await secureServer(given);
      const { sandbox, run } = await listedSandbox(given, {
        allow: [{ host: "api.example.com", ports: [port], private: true, credential: "other" }],
        ...{ credentials: { other: bearer }, environment },
      });
      const { stdout, stderr } = await run(argv(`https://api.example.com:${port}/v1/x?y=1`));
      expect(stderr).toBe("");
      expect(stdout.trim()).toBe("answer 1");
      expect(requests).toMatchObject([{ line: "GET /v1/x?y=1", body: "" }]);
      expect(requests[0]!.headers).toContain(`Authorization\nBearer ${secret}`);
      expect(requests[0]!.headers).toContain(`Host\napi.example.com:${port}`);
      expect(sandbox.networkUsage).toMatchObject({ connections: 1, refused: 0, refusals: [] });
      expect(sandbox.networkUsage!.sentBytes).toBeGreaterThan(50);
      expect(sandbox.networkUsage!.receivedBytes).toBeGreaterThan(50);
    },
  );
});
