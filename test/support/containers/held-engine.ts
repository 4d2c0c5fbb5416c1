/**
 * A socket before that of an engine, which can hold back the engine's answers: the engine does what
 * it was asked for, and its caller does not learn of it.
 */
import { once } from "node:events";
import { type Socket, connect, createServer } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryDirectory } from "../../integration/sandbox/sandbox-host.ts";

export interface HeldEngine {
  readonly socket: string;
  /** Holds the answers to the next requests for such a path until `release`. */
  hold(path: RegExp): void;
  /** Fulfils when the engine has answered a request that is held. */
  answered(): Promise<void>;
  release(): void;
}

/** It ends with the test. */
export async function holdEngine(engineSocket: string): Promise<HeldEngine> {
  const socket = join(await temporaryDirectory(), "socket");
  const sockets = new Set<Socket>();
  let held: RegExp | undefined;
  let [answer, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = createServer((caller) => {
    const engine = connect(engineSocket);
    for (const each of [caller, engine]) {
      sockets.add(each);
      each.on("error", () => undefined);
    }
    caller.on("close", () => engine.end());
    // Each request has a connection of its own.
    caller.once("data", (request: Buffer) => {
      const isHeld = held?.test(request.toString("latin1").split("\r\n")[0] ?? "") === true;
      engine.write(request);
      caller.pipe(engine);
      if (!isHeld) return void engine.pipe(caller);
      engine.once("readable", answer.resolve);
      void gate.promise.then(() => engine.pipe(caller));
    });
  });
  server.listen(socket);
  await once(server, "listening");
  onTestFinished(async () => {
    for (const each of sockets) each.destroy();
    await server[Symbol.asyncDispose]();
  });
  return {
    socket,
    hold(path) {
      [answer, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      held = path;
    },
    answered: () => answer.promise,
    release() {
      held = undefined;
      gate.resolve();
    },
  };
}
