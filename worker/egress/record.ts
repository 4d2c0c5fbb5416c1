/**
 * What a sandbox did with its network, for its answer and for the audit log.
 */
import { isHostName } from "../protocol/host-pattern.ts";
import type { NetworkRefusal, NetworkUsage, RefusalReason } from "../protocol/execution.ts";
import {
  type ConnectionLog,
  type EndedConnection,
  firstRefusals,
} from "../sandbox/network/sockets.ts";
import type { Clock } from "../support/clock.ts";
import type { Destination } from "./policy.ts";

/** Refused names that are known of one sandbox; further ones count with each question. */
const maxRefusedNames = 200;

/** Different refusals that are kept of one sandbox; further ones are counted. */
export const maxRefusals = 50;

type Time = Pick<Clock, "monotonicMs">;

/** Counts of one sandbox, and its connections, which wait for the call that follows them. */
export class NetworkRecord implements NetworkUsage, ConnectionLog {
  connections = 0;
  open = 0;
  sentBytes = 0;
  receivedBytes = 0;
  refused = 0;
  readonly refusals: NetworkRefusal[] = [];
  readonly #known = new Set<string>();
  /** The first ones. A program asks several questions for one name. */
  readonly #refusedNames = new Set<string>();
  readonly #clock: Time;
  /** At most those that a sandbox may make, and its first refusals. */
  readonly #waiting: EndedConnection[] = [];
  #onEnded = firstRefusals((connection) => this.#waiting.push(connection));

  constructor(clock: Time) {
    this.#clock = clock;
  }

  follow(onEnded: (connection: EndedConnection) => void): void {
    this.#onEnded = onEnded;
    for (const connection of this.#waiting.splice(0)) onEnded(connection);
  }

  /** A connection that begins; the caller ends it. */
  begin(destination: Destination): OpenConnection {
    this.open++;
    return new OpenConnection(destination, this, this.#clock);
  }

  /** A question for a name that no rule allows. The first one for a name counts. */
  refuseName(asked: string): void {
    // Others may be anything that a terminal or a model acts on.
    const name = isHostName(asked) ? asked : "(no name of a host)";
    if (this.#refusedNames.has(asked)) return;
    if (this.#refusedNames.size < maxRefusedNames) this.#refusedNames.add(asked);
    const nothing = { rules: [], sentBytes: 0, receivedBytes: 0, durationMs: 0 };
    this.report({ name, refusal: "name-not-allowed", refusedPart: "name", ...nothing });
  }

  /** Called once for each connection, each refused name, and each refused request. */
  report(connection: EndedConnection): void {
    const { name, address = "", port, refusal: reason } = connection;
    this.#onEnded(connection);
    if (reason === undefined) return;
    this.refused++;
    if (this.refusals.length >= maxRefusals) return;
    const host = name ?? address;
    const key = `${reason} ${port} ${host}`;
    if (!this.#known.has(key))
      this.refusals.push({ host, ...(port !== undefined && { port }), reason });
    this.#known.add(key);
  }
}

/** A connection from its begin to its end. */
export class OpenConnection {
  /** That the worker connects to, or refuses. */
  address: string | undefined;
  /** The rules that allow it, as their files have them. */
  rules: readonly string[] = [];
  readonly #destination: Destination;
  readonly #record: NetworkRecord;
  readonly #clock: Time;
  readonly #startMs: number;
  #sentBytes = 0;
  #receivedBytes = 0;
  #hasEnded = false;

  constructor(destination: Destination, record: NetworkRecord, clock: Time) {
    this.#destination = destination;
    this.#record = record;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
    if (destination.kind === "address") this.address = destination.address;
  }

  sent(bytes: number): void {
    this.#sentBytes += bytes;
    this.#record.sentBytes += bytes;
  }

  received(bytes: number): void {
    this.#receivedBytes += bytes;
    this.#record.receivedBytes += bytes;
  }

  /** A request on it that is refused, while the connection goes on. */
  refuseRequest(refusal: RefusalReason): void {
    const nothing = { sentBytes: 0, receivedBytes: 0, durationMs: 0 };
    this.#report({ refusal, refusedPart: "request", ...nothing });
  }

  /** Ends it, refused or not. The first call counts. */
  end(refusal?: RefusalReason): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#record.open--;
    this.#report({
      ...(refusal !== undefined && { refusal }),
      sentBytes: this.#sentBytes,
      receivedBytes: this.#receivedBytes,
      durationMs: Math.round(this.#clock.monotonicMs() - this.#startMs),
    });
  }

  #report(end: Omit<EndedConnection, "name" | "address" | "port" | "rules">): void {
    const { kind, port } = this.#destination;
    this.#record.report({
      ...(kind === "name" && { name: this.#destination.name }),
      ...(this.address !== undefined && { address: this.address }),
      port,
      rules: this.rules,
      ...end,
    });
  }
}
