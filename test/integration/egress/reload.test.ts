/**
 * A list of hosts that gets tighter while calls run: who has begun keeps its network, and nobody
 * else gets it.
 */
import { EventEmitter, once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { patience } from "../../support/patience.ts";
import { awaitedLater } from "../../support/workers/awaited-later.ts";
import { manifestText, namespace, startRig } from "../../support/workers/rig.ts";

/** `attends` connects anew for each line of its host, and says there what came of it. */
const source = `
import socket

def greets(host, port):
    try:
        with socket.create_connection((host, port), timeout=30) as connection:
            connection.sendall(b"hello")
            return {"told": connection.recv(100).decode()}
    except OSError as error:
        return {"told": type(error).__name__}

def attends(host, port):
    told = []
    with socket.create_connection((host, port), timeout=60) as held:
        held.sendall(b"attends")
        while held.recv(100) == b"again":
            told.append(greets(host, port)["told"])
            held.sendall(told[-1].encode())
    return {"told": told}
`;

const starts = ["cold", "pool", "template"] as const;

/** A host, with the connections of tools that attend. */
class Host {
  readonly server: Server;
  readonly #attending: Socket[] = [];
  readonly #news = new EventEmitter();

  constructor() {
    this.server = createServer((socket) => {
      socket.on("error", () => undefined);
      onTestFinished(() => void socket.destroy());
      socket.once("data", (chunk) => {
        if (chunk.toString() === "hello") return void socket.end("hello yourself");
        this.#attending.push(socket);
        this.#news.emit("attends");
      });
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void this.server.close());
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async attended(count: number): Promise<void> {
    while (this.#attending.length < count) await once(this.#news, "attends");
  }

  /** What each connection that is held says of a new one. */
  again(): Promise<readonly string[]> {
    const asked = this.#attending.map(async (socket) => {
      socket.write("again");
      const [chunk] = (await once(socket, "data")) as [Buffer];
      return chunk.toString();
    });
    return Promise.all(asked);
  }

  end(): void {
    for (const socket of this.#attending) socket.end();
  }
}

test(
  "running calls keep their list when it gets tighter, and the next calls have the new one",
  { tags: ["full", "promise-S34"] },
  async () => {
    const [former, later] = [new Host(), new Host()];
    await Promise.all([former, later].map(({ server }) => once(server, "listening")));
    const toolsFor = ({ port }: Host) => {
      const network = { allow: [{ host: "127.0.0.1", ports: [port], private: true }] };
      const entries = starts.flatMap((start) =>
        ["greets", "attends"].map((does) => {
          const warm = { min: 1, max: 1 };
          const entry = { module: "attending", function: does, network, start, warm };
          return [`${does}_${start}`, entry] as const;
        }),
      );
      return Object.fromEntries(entries);
    };
    const tools = toolsFor(former);
    const files = { "attending.py": source };
    const environment = { SANDBOX_MAX_CONCURRENT: "8" };
    await using rig = await startRig({ tools, files, isWarm: true, environment });
    const told = async (does: string, { port }: Host): Promise<readonly unknown[]> => {
      const answers = starts.map((start) =>
        rig.call(`${does}_${start}`, { host: "127.0.0.1", port }, { timeoutSeconds: 120 }),
      );
      return (await Promise.all(answers)).map((answer) =>
        answer.kind === "success" ? answer.toolResult["told"] : answer,
      );
    };
    const idle = async (does: string): Promise<void> => {
      for (const start of ["pool", "template"]) await rig.untilWaiting(`${does}_${start}`);
    };
    const each = (text: unknown): readonly unknown[] => starts.map(() => text);
    const refused = "ConnectionRefusedError";

    await idle("greets");
    expect(await told("greets", former)).toEqual(each("hello yourself"));
    expect(await told("greets", later)).toEqual(each(refused));
    await idle("attends");
    const running = awaitedLater(told("attends", former));
    await former.attended(starts.length);
    // These wait with the list of before.
    await idle("greets");
    await idle("attends");

    await writeFile(
      rig.manifestPath,
      manifestText({ ...toolsFor(later), fresh: { function: "well" } }),
    );
    const patterns = (): readonly string[] =>
      rig.broker.subscriptions.flatMap((subscription) => [...subscription.patterns]);
    await vi.waitFor(() => expect(patterns()).toContain(invokeTopic(namespace, "fresh")), patience);
    expect(await told("greets", former)).toEqual(each(refused));
    expect(await told("greets", later)).toEqual(each("hello yourself"));
    expect(await former.again()).toEqual(each("hello yourself"));
    await idle("greets");
    expect(await told("greets", former)).toEqual(each(refused));
    expect(await former.again()).toEqual(each("hello yourself"));
    former.end();
    expect(await running).toEqual(each(["hello yourself", "hello yourself"]));
  },
);
