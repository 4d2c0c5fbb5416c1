/**
 * Tools whose manifest entry names the hosts that they may reach, on a whole worker.
 */
import { once } from "node:events";
import { type AddressInfo, type Server, createServer } from "node:net";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { knownChildrenOf } from "../../../worker/sandbox/proc/processes.ts";
import { isRoot } from "../../support/is-root.ts";
import { type Rig, nodeTool, startRig } from "../../support/workers/rig.ts";

/** Connects to what it is told, and says what came of it. */
const pythonTool = `
import socket

def greets(host, port):
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(b"hello")
            return {"told": connection.recv(100).decode()}
    except OSError as error:
        return {"refused": type(error).__name__}
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

let server: Server;
let other: Server;
let rig: Rig;
let port: number;
let otherPort: number;

async function listen(): Promise<Server> {
  const made = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => socket.end(`${chunk.toString()} yourself`));
  });
  made.listen(0, "0.0.0.0");
  await once(made, "listening");
  return made;
}

const portOf = (made: Server): number => (made.address() as AddressInfo).port;

beforeAll(async () => {
  [server, other] = [await listen(), await listen()];
  [port, otherPort] = [portOf(server), portOf(other)];
  const allow = [{ host: "127.0.0.1", ports: [port], private: true }];
  const warm = { min: 1, max: 1 };
  const python = { module: "greeting", function: "greets", network: { allow } };
  rig = await startRig({
    tools: {
      cold: { ...python, start: "cold" },
      pool: { ...python, start: "pool", warm },
      template: { ...python, start: "template", warm },
      node: nodeTool("greeting.js", "greets", { network: { allow }, start: "cold" }),
      public_only: { ...python, network: { allow: [{ host: "127.0.0.1", ports: [port] }] } },
    },
    files: { "greeting.py": pythonTool },
    nodeFiles: { "greeting.js": nodeModule },
    isWarm: true,
  });
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  server.close();
  other.close();
});

const networkOf = (answer: object): unknown =>
  (answer as { response: { result: { execution: { network: unknown } } } }).response.result
    .execution.network;

test.each(["cold", "pool", "template", "node"])(
  "a tool reaches what its list names and nothing else, from a start that is %s",
  async (tool) => {
    if (tool === "pool" || tool === "template") await rig.untilWaiting(tool);
    const answer = await rig.call(tool, { host: "127.0.0.1", port });
    expect(answer).toMatchObject({ toolResult: { told: "hello yourself" } });
    expect(networkOf(answer)).toMatchObject({ connections: 1, refused: 0, sent_bytes: 5 });
    const start = tool === "node" ? "cold" : tool;
    expect(answer).toHaveProperty("response.result.execution.start", start);
    // Both listen.
    for (const [host, other] of [
      ["127.0.0.1", otherPort],
      ["127.0.0.2", port],
    ] as const) {
      const refused = await rig.call(tool, { host, port: other });
      expect(refused).toMatchObject({ toolResult: { refused: expect.any(String) as string } });
    }
  },
);

test("an address that is not public is refused without private, and the answer says so", async () => {
  const answer = await rig.call("public_only", { host: "127.0.0.1", port });
  expect(answer).toMatchObject({ toolResult: { refused: "ConnectionResetError" } });
  expect(networkOf(answer)).toMatchObject({
    refused: 1,
    refusals: [{ host: "127.0.0.1", port, reason: "not-public" }],
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

/** The program of this worker that enters sandboxes. */
async function doorOf(worker: number): Promise<number> {
  for (const child of knownChildrenOf(worker)) {
    const command = await readFile(`/proc/${child}/cmdline`, "utf8");
    if (command.includes("NS_GET_USERNS")) return child;
  }
  throw new Error("there is no such program");
}
