/**
 * A list by a worker of an ordinary user, without any capability and without a way to get one.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { firstPrivateDirectory } from "../../../worker/sandbox/path-permissions.ts";
import { asUser } from "../../support/doctor/attack-ways.ts";
import { isRoot } from "../../support/is-root.ts";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../../support/egress/reaching-sandbox.ts", import.meta.url));

const program = `
import socket

def greets(host, port):
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            print(connection.recv(100).decode())
    except OSError as error:
        print(type(error).__name__)

greets("api.example.com", {port})
greets("other.example.com", {port})
greets("127.0.0.1", {port})
greets("93.184.215.14", {port})
greets("api.example.com", 1)
`;

test.for([
  ["the user of the tests", []],
  ["an ordinary user without capabilities", asUser],
] as const)(
  "a list holds in a worker of %s",
  { tags: "promise-S34" },
  async ([, prefix], context) => {
    context.skip(prefix.length > 0 && !isRoot, "needs root, to become another user");
    const privateDirectory = await firstPrivateDirectory(import.meta.dirname);
    context.skip(
      prefix.length > 0 && privateDirectory !== undefined,
      "the checkout is private to root",
    );
    const [file = "", ...rest] = [...prefix, process.execPath, script, program];
    const { stdout } = await run(file, rest, { cwd: "/", env: { PATH: process.env["PATH"] } });
    const report = JSON.parse(stdout) as Record<string, unknown>;
    expect(report).toMatchObject({
      lines: [
        "greeting",
        "gaierror",
        "ConnectionResetError",
        "ConnectionResetError",
        "ConnectionRefusedError",
      ],
      refusals: [
        { host: "other.example.com", reason: "name-not-allowed" },
        { host: "127.0.0.1", reason: "no-rule" },
        { host: "93.184.215.14", reason: "no-rule" },
      ],
    });
    if (prefix.length > 0)
      expect(report).toMatchObject({ uid: 60_002, capabilities: expect.stringMatching(/^0+$/) });
  },
);
