/**
 * A sandbox whose network is `public`, in a network namespace where every address is answered: what
 * is not reached there is refused.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { isRoot } from "../../support/is-root.ts";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../../support/sandboxes/public-sandbox.ts", import.meta.url));

const hosts = {
  "api.example.com": ["8.8.8.8"],
  "private.example.com": ["10.0.0.1"],
  "rebinds.example.com": ["8.8.8.8", "10.0.0.1"],
  "broker.example.com": ["1.1.1.1"],
  broker: ["1.1.1.1"],
};

const program = `
import socket, ssl

def greets(host, port):
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(b"hello")
            print(connection.recv(100).decode())
    except OSError as error:
        print(type(error).__name__)

def tls(host, name):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, 443), timeout=10) as connection:
            with context.wrap_socket(connection, server_hostname=name) as secured:
                print(secured.recv(100).decode())
    except OSError:
        print("refused")

greets("api.example.com", 80)
greets("8.8.8.8", 80)
tls("api.example.com", "api.example.com")
tls("8.8.8.8", "any.example.com")
tls("api.example.com", "fronted.example.com")
greets("api.example.com", 443)
greets("api.example.com", 25)
for host in ["private.example.com", "rebinds.example.com", "broker.example.com", "1.1.1.1",
             "unknown.example.com", "10.0.0.1", "127.0.0.1", "127.0.0.2", "169.254.169.254",
             "100.64.0.1", "9.9.9.9"]:
    greets(host, 80)
`;

test(
  "a tool whose network is public reaches public addresses by TLS and HTTP, and nothing else",
  { tags: ["full", "promise-S34"] },
  async (context) => {
    if (!isRoot) context.skip("needs root to make a network where every address is answered");
    const argv = ["--net", process.execPath, script, program, JSON.stringify(hosts)];
    const { stdout } = await run("unshare", argv);
    const { lines, refusals } = JSON.parse(stdout) as { lines: string[]; refusals: object[] };
    expect(lines).toEqual([
      "hello yourself",
      "hello yourself",
      "secret",
      "secret",
      "refused",
      "ConnectionResetError",
      "ConnectionRefusedError",
      ...Array<string>(11).fill("ConnectionResetError"),
    ]);
    const refused = (host: string, reason: string, port = 80): object => ({ host, port, reason });
    expect(refusals).toEqual([
      refused("api.example.com", "sni", 443),
      refused("api.example.com", "not-tls", 443),
      refused("private.example.com", "not-public"),
      refused("rebinds.example.com", "not-public"),
      refused("broker.example.com", "worker"),
      refused("1.1.1.1", "worker"),
      refused("unknown.example.com", "name-not-found"),
      ...["10.0.0.1", "127.0.0.1", "127.0.0.2", "169.254.169.254", "100.64.0.1", "9.9.9.9"].map(
        (host) => refused(host, "not-public"),
      ),
    ]);
  },
);
