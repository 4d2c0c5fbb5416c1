/**
 * The authority of the edge, as OpenSSL, Node and Python judge it.
 */
import { execFile, spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { connect, createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { CertificateAuthority, leafMs } from "../../../worker/egress/edge/authority.ts";
import { systemClock } from "../../../worker/support/clock.ts";

const run = promisify(execFile);

async function directory(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "authority-"));
  onTestFinished(() => rm(made, { recursive: true }));
  return made;
}

/** What `openssl verify` says of a server of this name that has the authority's certificate. */
async function verify(
  authority: CertificateAuthority,
  holder: string,
  asked = holder,
): Promise<string> {
  const base = await directory();
  const [ca, leaf] = [join(base, "ca.pem"), join(base, "leaf.pem")];
  await writeFile(ca, authority.certificate);
  await writeFile(leaf, (await authority.leafFor(holder)).cert);
  const args = ["-x509_strict", "-purpose", "sslserver", "-CAfile", ca];
  return run("/usr/bin/openssl", ["verify", ...args, "-verify_hostname", asked, leaf]).then(
    () => "OK",
    (error: { stderr: string }) => /error \d+ at \d depth lookup: (.*)/.exec(error.stderr)![1]!,
  );
}

/** Connects a client of Node and one of Python to a server with the leaf. */
async function clients(authority: CertificateAuthority, name: string): Promise<readonly string[]> {
  const server = createServer(await authority.leafFor(name), (socket) => {
    socket.on("error", () => undefined);
    socket.end("welcome");
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const ca = authority.certificate;
  const node = connect({ port, host: "127.0.0.1", servername: name, ca });
  const byNode = await once(node, "data").then(
    ([chunk]) => String(chunk),
    (error: Error) => error.message,
  );
  node.destroy();
  const program = `
import socket, ssl, sys
context = ssl.create_default_context(cadata=sys.stdin.read())
try:
    with socket.create_connection(("127.0.0.1", ${port})) as connection:
        with context.wrap_socket(connection, server_hostname=${JSON.stringify(name)}) as secured:
            print(secured.recv(100).decode())
except ssl.SSLCertVerificationError as error:
    print(error.verify_message)`;
  const python = spawn("/usr/bin/python3", ["-c", program], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  python.stdin.end(ca);
  return [byNode, (await text(python.stdout)).trim()];
}

test("issues certificates that clients accept for its names", async () => {
  const authority = await CertificateAuthority.create(
    ["api.example.com", "example.org"],
    systemClock,
  );
  expect(await verify(authority, "api.example.com")).toBe("OK");
  // As a name that a wildcard allows.
  expect(await verify(authority, "a.b.example.org")).toBe("OK");
  expect(await verify(authority, "api.example.com", "www.example.com")).toMatch(/ostname mismatch/);
  expect(await clients(authority, "api.example.com")).toEqual(["welcome", "welcome"]);
});

test("is refused by clients for every other name, and for addresses", async () => {
  const authority = await CertificateAuthority.create(["api.example.com"], systemClock);
  for (const name of ["example.com", "www.example.com", "badapi.example.com", "com"])
    expect(await verify(authority, name)).toBe("permitted subtree violation");
  const args = ["x509", "-noout", "-ext", "nameConstraints"];
  const shown = run("/usr/bin/openssl", args);
  shown.child.stdin?.end(authority.certificate);
  expect((await shown).stdout.replaceAll(/\s+/g, " ").trim()).toBe(
    "X509v3 Name Constraints: critical Permitted: DNS:api.example.com Excluded: IP:0.0.0.0/0.0.0.0 IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0",
  );
  expect(await clients(authority, "www.example.com")).toEqual([
    "permitted subtree violation",
    "permitted subtree violation",
  ]);
});

test("has as many names as a list has rules", async () => {
  const names = Array.from({ length: 256 }, (_, index) => `${"h".repeat(50)}${index}.example.com`);
  const authority = await CertificateAuthority.create(names, systemClock);
  expect(await verify(authority, names[255]!)).toBe("OK");
  expect(await verify(authority, "other.example.com")).toBe("permitted subtree violation");
});

test("keeps a certificate for half of its time, and another authority does not know it", async () => {
  let nowMs = Date.now();
  const authority = await CertificateAuthority.create(["api.example.com"], { nowMs: () => nowMs });
  const first = await authority.leafFor("api.example.com");
  nowMs += leafMs / 2 - 1;
  expect(await authority.leafFor("api.example.com")).toBe(first);
  nowMs += 1;
  const second = await authority.leafFor("api.example.com");
  expect(second.cert).not.toBe(first.cert);
  expect(new X509Certificate(second.cert).validToDate.getTime()).toBeGreaterThan(
    nowMs + leafMs / 2,
  );
  const other = await CertificateAuthority.create(["api.example.com"], systemClock);
  const { publicKey } = new X509Certificate(other.certificate);
  expect(new X509Certificate(first.cert).verify(publicKey)).toBe(false);
  expect(
    new X509Certificate(first.cert).verify(new X509Certificate(authority.certificate).publicKey),
  ).toBe(true);
});
