/**
 * A listed name whose owner leads it elsewhere while a tool uses it, in a network namespace where
 * every address is answered: what is not reached there is refused.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { isRoot } from "../../support/is-root.ts";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../../support/egress/rebinding-sandbox.ts", import.meta.url));

const records = {
  "rebinds.example.com": ["93.184.215.14", "10.0.0.1"],
  "moves.example.com": ["93.184.215.14", "93.184.215.15"],
  "consents.example.com": ["93.184.215.14", "10.0.0.1"],
};

const allow = ["rebinds.example.com:80", "moves.example.com:80"];

const program = `
import socket

def ask(host, message=b"where", proxy=False):
    try:
        with socket.create_connection(("127.0.0.1", 3128) if proxy else (host, 80), timeout=10) as connection:
            if proxy:
                connection.sendall(f"CONNECT {host}:80 HTTP/1.1\\r\\nHost: {host}:80\\r\\n\\r\\n".encode())
                status = connection.recv(4096).split(b" ")[1]
                if status != b"200":
                    return status.decode()
            connection.sendall(message)
            return connection.recv(100).decode()
    except OSError as error:
        return type(error).__name__

names = ("rebinds.example.com", "moves.example.com", "consents.example.com")
for name in names:
    print(ask(name), ask(name), ask(name, proxy=True))
ask("moves.example.com", b"{later}")
for name in names:
    print(ask(name), ask(name), ask(name, proxy=True))
`;

test(
  "a listed name that leads to a private address later is refused from then on",
  { tags: ["full", "promise-S34"] },
  async (context) => {
    if (!isRoot) context.skip("needs root to make a network where every address is answered");
    const list = [...allow, { host: "consents.example.com", ports: [80], private: true }];
    const order = [program, JSON.stringify(list), JSON.stringify(records)];
    const { stdout } = await run("unshare", ["--net", process.execPath, script, ...order]);
    const { lines, refusals, asked } = JSON.parse(stdout) as Record<string, unknown>;
    const [first, reset] = ["93.184.215.14", "ConnectionResetError"];
    expect(lines).toEqual([
      ...Array<string>(3).fill(`${first} ${first} ${first}`),
      `${reset} ${reset} 403`,
      "93.184.215.15 93.184.215.15 93.184.215.15",
      "10.0.0.1 10.0.0.1 10.0.0.1",
    ]);
    const host = "rebinds.example.com";
    expect(refusals).toEqual([{ host, port: 80, reason: "not-public" }]);
    // Not for each connection: the tool does not choose the answer.
    expect(asked).toEqual(
      [...Object.keys(records), ...Object.keys(records)].map((name) => `A ${name}`),
    );
  },
);
