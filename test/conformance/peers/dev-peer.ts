/**
 * A client of the DevBroker that speaks like the original one in Python: one socket, one command at
 * a time, and JSON as `json.dumps` writes it (blanks after separators, everything beyond ASCII
 * escaped, bare `NaN`).
 */
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import type { HeardMessage, Peer } from "../broker.ts";

/** JSON text as Python writes it. */
export function pythonJson(value: unknown): string {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(
      ([name, member]) => `${pythonJson(name)}: ${pythonJson(member)}`,
    );
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A connected client. */
export class PythonClient implements AsyncDisposable {
  readonly #socket: Socket;
  #received: string[] = [];
  readonly #answers: string[] = [];
  #arrived = Promise.withResolvers<void>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("error", () => {});
    socket.on("data", (text: string) => {
      this.#received.push(text);
      if (!text.includes("\n")) return;
      const lines = this.#received.join("").split("\n");
      this.#received = lines.splice(-1);
      this.#answers.push(...lines);
      this.#notify();
    });
    socket.on("close", () => this.#notify());
  }

  static async connect(port: number, subscriptions: readonly string[] = []): Promise<PythonClient> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    const client = new PythonClient(socket);
    await client.command(
      pythonJson({ cmd: "CONNECT", client_id: `agent-${crypto.randomUUID()}`, subscriptions }),
    );
    return client;
  }

  /** Sends a line and returns the line that answers it. */
  async command(line: string): Promise<string> {
    this.#socket.write(`${line}\n`);
    for (;;) {
      const answer = this.#answers.shift();
      if (answer !== undefined) return answer;
      if (this.#socket.closed) throw new Error("the connection was closed without an answer");
      await this.#arrived.promise;
    }
  }

  #notify(): void {
    this.#arrived.resolve();
    this.#arrived = Promise.withResolvers();
  }

  /** Publishes; `payload` is JSON text. */
  async publish(topic: string, payload: string, properties: object = {}): Promise<void> {
    const rest = pythonJson({ user_properties: properties, topic }).slice(1);
    const answer = await this.command(`{"cmd": "PUBLISH", "payload": ${payload}, ${rest}`);
    if (!answer.startsWith('{"status":"OK"')) throw new Error(answer);
  }

  /** Waits for the next message. */
  async receive(): Promise<HeardMessage> {
    for (;;) {
      const answer = JSON.parse(await this.command('{"cmd": "RECEIVE", "timeout_ms": 1000}')) as {
        status: string;
        message: { topic: string; payload: unknown; user_properties: Record<string, unknown> };
      };
      if (answer.status === "TIMEOUT") continue;
      const { topic, payload, user_properties: properties } = answer.message;
      return { topic, payload: JSON.stringify(payload), properties };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    if (!this.#socket.closed) await once(this.#socket, "close");
  }
}

/** The agents' side of a DevBroker, for the conformance suite. */
export async function connectDevPeer(port: number): Promise<Peer & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const publisher = stack.use(await PythonClient.connect(port));
  const owned = stack.move();
  return {
    publish: (topic, payload, properties) => publisher.publish(topic, payload, properties),
    async listen(pattern) {
      const listener = owned.use(await PythonClient.connect(port, [pattern]));
      return () => listener.receive();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
