/**
 * Connections with time limits, which neither the SDK nor its HTTP library has.
 */
import { Agent as HttpAgent, type AgentOptions } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { Socket } from "node:net";
import { failureCodes } from "./failures.ts";

/** Milliseconds to connect, and without a byte on a connection. */
const timeoutsMs = { connect: 5_000, idle: 20_000 };

/** Open connections of a store. */
const maxConnections = 64;

/** The connections of a store. */
export class Connections implements Disposable {
  readonly #options: AgentOptions = {
    keepAlive: true,
    maxSockets: maxConnections,
    timeout: timeoutsMs.idle,
  };
  readonly #plain = limited(new HttpAgent(this.#options));
  readonly #secure = limited(new HttpsAgent(this.#options));

  agentFor(url: URL): HttpAgent {
    return url.protocol === "http:" ? this.#plain : this.#secure;
  }

  [Symbol.dispose](): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

function limited<SomeAgent extends HttpAgent>(agent: SomeAgent): SomeAgent {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const connection = connect(options, callback);
    if (connection instanceof Socket) limit(connection);
    return connection;
  };
  const reuse = agent.reuseSocket.bind(agent);
  agent.reuseSocket = (connection, request) => {
    reuse(connection, request);
    // While it was idle it had the server's limit.
    if (connection instanceof Socket) connection.setTimeout(timeoutsMs.idle);
  };
  return agent;
}

function limit(socket: Socket): void {
  const end = (): void => {
    socket.destroy(Object.assign(new Error("the server is silent"), { code: failureCodes.silent }));
  };
  const connecting = setTimeout(end, timeoutsMs.connect);
  const isOver = (): void => clearTimeout(connecting);
  // A connection of TLS is one only then.
  socket.once("encrypted" in socket ? "secureConnect" : "connect", isOver).once("close", isOver);
  socket.on("timeout", end);
  // The HTTP library takes the limit away when an answer starts.
  const setLimit = socket.setTimeout.bind(socket);
  socket.setTimeout = (ms, callback) => {
    if (ms > 0) return setLimit(ms, callback);
    if (callback !== undefined) socket.removeListener("timeout", callback);
    return setLimit(timeoutsMs.idle);
  };
}
