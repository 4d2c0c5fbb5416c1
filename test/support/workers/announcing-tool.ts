/**
 * A tool that tells the test when it runs, and goes on when the test says so.
 */
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { createInterface } from "node:readline";
import { expect, onTestFinished, vi } from "vitest";

/**
 * File name and source of the tool's module. `announces` listens to no SIGTERM unless it is told
 * to; `passes_on` calls another tool.
 */
export const announcingTool = {
  file: "announcing.py",
  source: `
import signal
import socket


def announces(ctx, port, name="run", input=None, saved_bytes=0, ends_at_sigterm=False):
    if not ends_at_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.create_connection(("127.0.0.1", port)) as test:
        test.sendall(name.encode() + b"\\n")
        told = test.makefile().readline().strip()
    if saved_bytes > 0:
        ctx.save_artifact("saved.bin", bytes(saved_bytes))
    return {"told": told}


async def passes_on(ctx, tool, **args):
    try:
        return {"inner": dict(await ctx.tools.call(tool, args))}
    except Exception as error:
        return {"code": error.code}
`,
} as const;

/** Its entries of a manifest; that of `passes_on` needs a gateway. */
export const announces = {
  module: "announcing",
  function: "announces",
  network: "host",
  allowed_callers: ["direct", "programmatic"],
} as const;
export const passesOn = { module: "announcing", function: "passes_on" } as const;

/** The runs of the tool, by the names that their calls gave them. */
export class ToolRuns {
  /** What calls have to give as `port`. */
  readonly port: number;
  /** A name for each run that ever began, in order. */
  readonly begun: string[] = [];
  /** Processes of the tool that live. */
  alive = 0;
  readonly #waiting = new Map<string, Socket>();

  private constructor(port: number) {
    this.port = port;
  }

  /** Hears of runs until the test is over. */
  static async listen(): Promise<ToolRuns> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const runs = new ToolRuns((server.address() as AddressInfo).port);
    server.on("connection", (socket) => runs.#follow(socket));
    onTestFinished(async () => {
      for (const socket of runs.#waiting.values()) socket.destroy();
      await server[Symbol.asyncDispose]();
    });
    return runs;
  }

  /** Waits until these runs have begun, in any order, and no others. */
  async haveBegun(...names: string[]): Promise<void> {
    const all = names.toSorted();
    await vi.waitFor(() => expect(this.begun.toSorted()).toEqual(all), {
      timeout: 20_000,
      interval: 20,
    });
  }

  /** Lets runs that wait go on to their results; every one unless named. */
  finish(...names: string[]): void {
    for (const name of names.length === 0 ? this.#waiting.keys() : names) {
      this.#waiting.get(name)?.end("done\n");
      this.#waiting.delete(name);
    }
  }

  #follow(socket: Socket): void {
    this.alive++;
    const isKilled = (): void => undefined;
    socket.on("error", isKilled).on("close", () => this.alive--);
    const lines = createInterface(socket).on("error", isKilled);
    lines.once("line", (name) => {
      this.begun.push(name);
      this.#waiting.set(name, socket);
    });
  }
}
