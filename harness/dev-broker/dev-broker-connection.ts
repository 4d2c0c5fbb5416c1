/**
 * One connection to a DevBroker, from its first byte to its last: commands are carried out one
 * after the other.
 */
import type { Socket } from "node:net";
import { maxLineBytes } from "../../worker/broker/dev/wire.ts";
import { newUuid } from "../../worker/support/ids.ts";
import { LineSplitter } from "../../worker/support/text/byte-lines.ts";
import {
  type Command,
  decodeCommand,
  encodeError,
  encodeOk,
  encodeTimeout,
} from "./dev-broker-frames.ts";
import { Client, type Hub, maxPatternsPerClient } from "./dev-broker-hub.ts";

/** Serves a connection until either side ends it. Never rejects. */
export async function serveConnection(socket: Socket, hub: Hub): Promise<void> {
  const gone = new AbortController();
  // Whoever breaks a connection has left; there is nobody to tell.
  socket.on("error", () => {});
  socket.on("close", () => gone.abort());
  socket.on("end", () => gone.abort());
  const conversation = new Conversation(hub, gone.signal);
  for await (const line of readLines(socket)) {
    const answer = await conversation.answer(decodeCommand(line));
    if (answer === undefined) break;
    await write(socket, answer);
    if (conversation.isOver) break;
  }
  conversation.leave();
  socket.destroySoon();
}

/** What one connection has said so far. */
class Conversation {
  /** Whether the client has taken its leave. */
  isOver = false;
  readonly #hub: Hub;
  readonly #gone: AbortSignal;
  #client: Client | undefined;

  constructor(hub: Hub, gone: AbortSignal) {
    this.#hub = hub;
    this.#gone = gone;
  }

  /** The answer to a command; undefined when there is none and the connection is dropped. */
  async answer(command: Command): Promise<Buffer | undefined> {
    if (command.kind === "fatal") return undefined;
    if (command.kind === "unreadable") return encodeError("INVALID_COMMAND", command.message);
    if (command.kind === "CONNECT") return this.#connect(command.clientId, command.subscriptions);
    const client = this.#client;
    if (client === undefined) return encodeError("NOT_CONNECTED", "Not connected");
    switch (command.kind) {
      case "incomplete":
        return encodeError("INVALID_COMMAND", command.message);
      case "SUBSCRIBE":
        return this.#subscribe(client, command.topicPattern);
      case "UNSUBSCRIBE":
        client.patterns.delete(command.topicPattern);
        this.#hub.announce(client);
        return encodeOk();
      case "PUBLISH":
        return encodeOk({ message_id: this.#hub.publish(client, command) });
      case "RECEIVE":
        return (await client.receive(command.timeoutMs, this.#gone)) ?? encodeTimeout();
      case "ACK":
        return encodeOk();
      case "DISCONNECT":
        this.isOver = true;
        return encodeOk();
    }
  }

  /** Unregisters the client. */
  leave(): void {
    if (this.#client) this.#hub.remove(this.#client);
  }

  /** Connecting again on the same connection makes a new client of it. */
  #connect(id: string | null | undefined, patterns: readonly string[]): Buffer {
    if (patterns.length > maxPatternsPerClient) {
      return encodeError("INTERNAL_ERROR", "Connect failed");
    }
    this.leave();
    const client = new Client(id === undefined ? newUuid() : id, patterns);
    this.#client = client;
    this.#hub.add(client);
    return encodeOk({ client_id: client.id });
  }

  #subscribe(client: Client, pattern: string): Buffer {
    if (client.patterns.size >= maxPatternsPerClient) {
      return encodeError("SUBSCRIBE_FAILED", `More than ${maxPatternsPerClient} patterns`);
    }
    client.patterns.add(pattern);
    this.#hub.announce(client);
    return encodeOk();
  }
}

/**
 * The lines of a connection, as many as are asked for. Reading goes on while one line is being
 * worked on, so that the end of the connection is noticed; it stops while finished lines wait. Ends
 * with the connection and at a line that is too long.
 */
async function* readLines(socket: Socket): AsyncGenerator<Buffer, void> {
  const splitter = new LineSplitter(maxLineBytes);
  const lines: Buffer[] = [];
  let isOver = false;
  let awake = Promise.withResolvers<void>();
  const end = (): void => {
    isOver = true;
    awake.resolve();
  };
  socket.on("data", (chunk: Buffer) => {
    for (const line of splitter.push(chunk)) {
      if (line.kind === "too-long") return end();
      if (!isOver) lines.push(line.bytes);
    }
    if (splitter.isOverlong) return end();
    if (lines.length > 0) socket.pause();
    awake.resolve();
  });
  socket.on("end", end);
  socket.on("close", end);
  for (;;) {
    const line = lines.shift();
    if (line !== undefined) {
      if (lines.length === 0) socket.resume();
      yield line;
    } else if (isOver) {
      return;
    } else {
      awake = Promise.withResolvers();
      await awake.promise;
    }
  }
}

/** Waits until the answer is on its way, or until nobody is there to read it. */
function write(socket: Socket, line: Buffer): Promise<void> {
  return new Promise((resolve) => socket.write(line, () => resolve()));
}
