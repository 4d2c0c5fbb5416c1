/**
 * The worker's sockets in network namespaces, by native code and by forks of Python.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile, readdir, readlink } from "node:fs/promises";
import { createInterface } from "node:readline";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { Door, type HeldSandbox } from "../../../../worker/sandbox/network/door.ts";
import { isGone, knownChildrenOf } from "../../../../worker/sandbox/proc/processes.ts";
import { patience } from "../../../support/patience.ts";

const run = promisify(execFile);
const never = AbortSignal.any([]);
const pythonBin = "/usr/bin/python3";
const nothing = { tcp: [], udp: [] };
const place = (port: number) => ({ address: "127.64.0.1", port });
const everyAddress = { tcp: [{ address: "0.0.0.0", port: 80 }], udp: [] };

/** Raises the loopback interface when told to. */
const raisesLoopback = `
import fcntl, socket
print(flush=True)
input()
up = b"lo".ljust(16, b"\\0") + b"\\1".ljust(24, b"\\0")
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, up)
`;
/** Listens on a port without room for more than its own connection. */
const fullServer = `
${raisesLoopback}
full = socket.create_server(("127.0.0.1", 81), backlog=0)
own = socket.create_connection(("127.0.0.1", 81))
print(flush=True)
`;

const socketsBy = (nativePath: string | undefined): void => {
  const openDoor = (): Door => {
    const options = { pythonBin, uid: undefined };
    const door = new Door(nativePath === undefined ? options : { ...options, nativePath });
    onTestFinished(() => door[Symbol.asyncDispose]());
    return door;
  };

  test("are inside, in their order, and every address leads to them", async (context) => {
    const [door, { sandbox }] = [openDoor(), await held(context)];
    const { tcp } = everyAddress;
    const places = { tcp: [...tcp, place(53)], udp: [place(53), place(54)] };
    using sockets = await door.into(sandbox).open(places, never);
    const addresses = [...sockets.tcp, ...sockets.udp].map((socket) => socket.address());
    expect(addresses).toMatchObject([...places.tcp, ...places.udp]);
    sockets.tcp[0]!.on("connection", (connection) => connection.end("hello"));
    const program = `import socket; print(socket.create_connection(("192.0.2.7", 80), 5).recv(9))`;
    const { stdout } = await run("nsenter", [
      ...["--preserve-credentials", "--user", "--net", "--target", String(sandbox.pid)],
      ...[pythonBin, "-c", program],
    ]);
    expect(stdout).toBe("b'hello'\n");
    const memory = await readFile(`/proc/${doorOf()}/maps`, "utf8");
    expect(memory.includes("/network/native/")).toBe(nativePath === undefined);
  });

  test("are as many as one may have, for several at once", async (context) => {
    const door = openDoor();
    const numbered = (count: number) => Array.from({ length: count }, (_, port) => place(port + 1));
    const places = { tcp: numbered(100), udp: numbered(28) };
    const all = await Promise.all([held(context), held(context), held(context)]);
    const opening = all.map(({ sandbox }) => door.into(sandbox).open(places, never));
    for (const sockets of await Promise.all(opening)) {
      expect(sockets.tcp.map((socket) => socket.address())).toMatchObject(places.tcp);
      expect(sockets.udp.map((socket) => socket.address())).toMatchObject(places.udp);
      sockets[Symbol.dispose]();
    }
    const more = door.into(all[0].sandbox).open({ tcp: numbered(129), udp: [] }, never);
    await expect(more).rejects.toMatchObject(because(/^too many sockets$/));
  });

  test("are connected to what listens on 127.0.0.1", async (context) => {
    const inside = openDoor().into((await held(context)).sandbox);
    using sockets = await inside.open(everyAddress, never);
    sockets.tcp[0]!.on("connection", (connection) => connection.end("hello"));
    const socket = await inside.connect(80, never);
    expect((await buffer(socket)).toString()).toBe("hello");
    await expect(inside.connect(81, never)).rejects.toMatchObject(because(/Connection refused$/));
  });

  test("are refused for a sandbox that has ended, and for another one's number", async (context) => {
    const [door, { sandbox, child }] = [openDoor(), await held(context)];
    const refusedTo = (wrong: Partial<HeldSandbox>, reason: RegExp) =>
      expect(door.into({ ...sandbox, ...wrong }).connect(80, never)).rejects.toMatchObject(
        because(reason),
      );
    await refusedTo({ namespace: sandbox.namespace + 1 }, /^OSError: the sandbox has ended$/);
    await refusedTo({ pid: process.pid }, /^OSError: the sandbox has ended$/);
    await refusedTo({ pid: -1 }, /^FileNotFoundError: .*No such file or directory/);
    child.kill("SIGKILL");
    await once(child, "exit");
    await refusedTo({}, /^FileNotFoundError: .*No such file or directory/);
    await door.into((await held(context)).sandbox).open(nothing, never);
  });

  test("leave the door no descriptor and no process, however their request ends", async (context) => {
    const [door, { sandbox }] = [openDoor(), await held(context)];
    const inside = door.into(sandbox);
    using _ = await inside.open(everyAddress, never);
    // Then the door has closed all that it handed over.
    await expect(inside.connect(81, never)).rejects.toThrow();
    const before = await descriptorsOf(doorOf());
    for (let round = 0; round < 20; round++) {
      (await inside.connect(80, never)).destroy();
      await expect(inside.connect(81, never)).rejects.toThrow();
      await expect(door.into({ ...sandbox, namespace: 1 }).connect(80, never)).rejects.toThrow();
      const again = inside.open(nothing, never);
      await expect(again).rejects.toMatchObject(because(/^FileExistsError: \[Errno 17\] route: /));
    }
    const twice = { tcp: [place(80)], udp: [place(80), place(80)] };
    const other = door.into((await held(context)).sandbox).open(twice, never);
    await expect(other).rejects.toMatchObject(because(/Address already in use$/));
    expect(await descriptorsOf(doorOf())).toEqual(before);
    expect(knownChildrenOf(doorOf())).toEqual([]);
  });

  test("are all or none where the door has too few descriptors", async (context) => {
    const [door, { sandbox }] = [openDoor(), await held(context)];
    await door.into(sandbox).open(nothing, never);
    const before = await descriptorsOf(doorOf());
    const places = { tcp: [place(1), place(2)], udp: [place(3), place(4)] };
    // From none to all but one of those that it needs.
    for (let room = 0; room < 6; room++) {
      const most = before.length + room;
      await run("prlimit", ["--pid", String(doorOf()), `--nofile=${most}:1024`]);
      const opening = door.into((await held(context)).sandbox).open(places, never);
      await expect(opening).rejects.toMatchObject(because(/Too many open files/));
      expect(await descriptorsOf(doorOf())).toEqual(before);
    }
    await run("prlimit", ["--pid", String(doorOf()), "--nofile=1024:1024"]);
    using sockets = await door.into((await held(context)).sandbox).open(places, never);
    expect(sockets.tcp).toHaveLength(2);
  });

  test("wait until the loopback interface is up", async (context) => {
    const [door, { sandbox, child }] = [openDoor(), await held(context, raisesLoopback)];
    const opening = door.into({ ...sandbox, raisesLoopback: false }).open(nothing, never);
    await processOf(await vi.waitFor(doorOf, patience));
    child.stdin?.write("\n");
    await opening;
  });

  test("do not come where it stays down", async (context) => {
    const { sandbox } = await held(context);
    const inside = openDoor().into({ ...sandbox, raisesLoopback: false });
    const opening = inside.open(nothing, never);
    await expect(opening).rejects.toMatchObject(because(/timed out$|^no sockets within 2 s$/));
  });

  test("do not come from what accepts nothing", async (context) => {
    const [door, { sandbox, child, lines }] = [openDoor(), await held(context, fullServer)];
    child.stdin?.write("\n");
    await lines.next();
    const attempts = Array.from({ length: 3 }, () => door.into(sandbox).connect(81, never));
    for (const attempt of attempts)
      await expect(attempt).rejects.toMatchObject(because(/^TimeoutError: .*timed out$/));
  });

  test("do not come from a process that is killed, and come from the next one", async (context) => {
    const [door, { sandbox }] = [openDoor(), await held(context)];
    await expect(door.into(sandbox).connect(80, never)).rejects.toThrow();
    const before = await descriptorsOf(doorOf());
    const opening = door.into({ ...sandbox, raisesLoopback: false }).open(nothing, never);
    process.kill(await processOf(doorOf()), "SIGKILL");
    const ended = because(/the process that enters sandboxes has ended$/);
    await expect(opening).rejects.toMatchObject(ended);
    expect(await descriptorsOf(doorOf())).toEqual(before);
    await door.into(sandbox).open(nothing, never);
  });

  test("are made by no process that has lost its door", async (context) => {
    const [door, { sandbox }] = [openDoor(), await held(context)];
    const opening = door.into({ ...sandbox, raisesLoopback: false }).open(nothing, never);
    const inside = await processOf(await vi.waitFor(doorOf, patience));
    const start = performance.now();
    process.kill(doorOf(), "SIGKILL");
    await expect(opening).rejects.toThrow();
    await vi.waitFor(() => expect(isGone(inside)).toBe(true), patience);
    // Less than it would have waited for the interface.
    expect(performance.now() - start).toBeLessThan(1_500);
  });

  test("are made for no worker that has been killed", async (context) => {
    const { sandbox, child } = await held(context, raisesLoopback);
    const options = { pythonBin, nativePath };
    const url = new URL("../../../../worker/sandbox/network/door.ts", import.meta.url);
    const program = `
      import { Door } from ${JSON.stringify(url)};
      const sandbox = ${JSON.stringify({ ...sandbox, raisesLoopback: false })};
      const { signal } = new AbortController();
      await new Door(${JSON.stringify(options)}).into(sandbox).open({ tcp: [], udp: [] }, signal);
    `;
    const worker = spawn(process.execPath, ["--input-type=module", "--eval", program]);
    onTestFinished(() => void worker.kill("SIGKILL"));
    const door = await vi.waitFor(() => doorOf(worker.pid), patience);
    const inside = await processOf(door);
    worker.kill("SIGKILL");
    await once(worker, "exit");
    child.stdin?.write("\n");
    for (const pid of [inside, door])
      await vi.waitFor(() => expect(isGone(pid)).toBe(true), patience);
  });
};
describe("sockets of a sandbox by native code", () => socketsBy(undefined));
describe("sockets of a sandbox by a fork", { tags: "full" }, () => socketsBy("/nowhere/native.so"));

interface Held {
  readonly sandbox: HeldSandbox;
  readonly child: ChildProcess;
  readonly lines: AsyncIterator<string>;
}

/** A process in a network namespace, whose loopback interface is down. It prints a line. */
async function held(context: TestContext, program = "print(flush=True)"): Promise<Held> {
  const argv = [pythonBin, "-I", "-S", "-c", `${program}\ninput()`];
  const child = spawn("unshare", ["--user", "--map-root-user", "--net", ...argv]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  if ((await lines.next()).done === true) context.skip("no namespaces for users");
  const pid = child.pid!;
  const name = await readlink(`/proc/${pid}/ns/net`);
  const sandbox = { pid, namespace: Number(/\d+/.exec(name)![0]), raisesLoopback: true };
  return { sandbox, child, lines };
}

/** The error of a request with this reason. */
function because(reason: RegExp): object {
  const cause = { message: expect.stringMatching(reason) as string };
  return { name: "SandboxError", cause };
}

/** The program of a worker that enters namespaces. */
function doorOf(worker = process.pid): number {
  const children = knownChildrenOf(worker);
  const doors = children.filter((pid) =>
    /^NS_GET_USERNS/m.test(readFileSync(`/proc/${pid}/cmdline`, "utf8")),
  );
  expect(doors).toHaveLength(1);
  return doors[0]!;
}

/** The process of the request that a door serves. */
function processOf(door: number): Promise<number> {
  return vi.waitFor(() => {
    const [pid] = knownChildrenOf(door);
    expect(pid).toBeDefined();
    return pid!;
  }, patience);
}

async function descriptorsOf(pid: number): Promise<readonly string[]> {
  const directory = `/proc/${pid}/fd`;
  return Promise.all(
    (await readdir(directory)).map(
      async (name) => `${name} ${await readlink(`${directory}/${name}`)}`,
    ),
  );
}
