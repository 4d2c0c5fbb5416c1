/**
 * Programs in real sandboxes that use the HTTP proxy because variables say so.
 */
import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { describe, expect, test } from "vitest";
import { Authority } from "../../support/brokers/rabbitmq-certificates.ts";
import { listedSandbox, nodeInside } from "../../support/egress/listed-sandbox.ts";
import { openNetworkPlace } from "../../support/sandboxes/network-place.ts";
import { listen } from "./proxy-server.ts";
import { shared } from "../../support/shared.ts";

const place = shared(async () => {
  await using opened = new AsyncDisposableStack();
  const { backend, base } = opened.use(await openNetworkPlace());
  const authority = await Authority.create(base);
  const { cert, key } = await authority.issue("server", "DNS:api.example.com");
  const files = { cert: await readFile(cert), key: await readFile(key) };
  const owned = opened.move();
  return { backend, files, [Symbol.asyncDispose]: () => owned.disposeAsync() };
});

const entry = (port: number) => ({ host: "api.example.com", ports: [port], private: true });
const curl = (...rest: readonly string[]) => [
  ...["/usr/bin/curl", "-sS", "-k", "-w", " %{http_connect} %{http_code}"],
  ...rest,
];

const urllib = (url: string): readonly string[] => [
  ...["/usr/bin/python3", "-c"],
  `
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    print(urllib.request.urlopen("${url}", timeout=20, context=context).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print(error)
`,
];

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const fetching = (url: string): readonly string[] => [
  ...[nodeInside, "-e"],
  `fetch("${url}").then((a) => a.text()).then(console.log, (e) => console.log("refused"))`,
];

describe("programs with the variables of the proxy", { tags: "promise-S38" }, () => {
  test("reach what the list allows by http and https, and are told of the rest", async (context) => {
    const { backend, files } = await place(context);
    const from: unknown[] = [];
    const clear = await listen(
      createHttpServer((request, response) => {
        from.push(request.url);
        response.end("clear");
      }),
    );
    const secure = await listen(
      createHttpsServer(files, (_request, response) => response.end("secure")),
    );
    const { sandbox, run } = await listedSandbox(
      { backend },
      { allow: [entry(clear), entry(secure)] },
    );
    const outputsOf = async (commands: readonly (readonly string[])[]): Promise<string[]> => {
      const script = commands.map((argv) => `${argv.map(quoted).join(" ")} 2>&1; echo; echo --`);
      const { stdout } = await run(["/bin/sh", "-c", script.join("\n")]);
      return stdout
        .split("--\n")
        .slice(0, -1)
        .map((output) => output.trim());
    };
    const [api, securely] = [
      `http://api.example.com:${clear}`,
      `https://api.example.com:${secure}`,
    ];
    const refused = `http://other.example.com:${clear}`;
    const through = `fronted.example.com:${secure}:api.example.com:${secure}`;
    const outputs = await outputsOf([
      curl(`${api}/x`),
      curl(securely),
      urllib(`${api}/y`),
      urllib(securely),
      // It ignores the variables.
      fetching(`${api}/z`),
      curl(refused),
      urllib(refused),
      curl(`https://api.example.com:${clear + 1}`),
      // Another name behind a tunnel that is allowed.
      curl("--connect-to", through, `https://fronted.example.com:${secure}`),
    ]);
    const message = `other.example.com:${clear}: the network of this tool does not allow it (no-rule)`;
    expect(outputs).toEqual([
      ...["clear 000 200", "secure 200 200", "clear", "secure", "clear"],
      ...[`${message}\n 000 403`, `403 ${message}`],
      ...[expect.stringContaining("403 000"), expect.stringContaining("200 000")],
    ]);
    expect(from).toEqual(["/x", "/y", "/z"]);
    expect(sandbox.networkUsage).toMatchObject({
      refused: 4,
      refusals: [
        { host: "other.example.com", port: clear, reason: "no-rule" },
        { host: "api.example.com", port: clear + 1, reason: "no-rule" },
        { host: "api.example.com", port: secure, reason: "sni" },
      ],
    });
  });
});
