/**
 * What every connection to a DevBroker does: it introduces itself as a client, and fetches messages
 * if that is its task.
 */
import { newId } from "../../support/ids.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { DevConnection } from "./connection.ts";
import { type Answer, type DevMessage, encodeCommand } from "./wire.ts";

/**
 * Milliseconds beyond its own time that the answer to a `RECEIVE` may take (as the original
 * client).
 */
const receiveGraceMs = 5_000;

/** Where the DevBroker is and who we are. */
export interface ClientOptions {
  readonly host: string;
  readonly port: number;
  /** Beginning of the client ids, for those who read the broker's log. */
  readonly workerId: string;
}

/**
 * Connects and introduces a client under an id that is never used again. Throws BrokerError, or the
 * signal's reason when it aborts; leaves nothing open then.
 */
export async function openClient(
  options: ClientOptions,
  subscriptions: readonly string[],
  signal: AbortSignal,
): Promise<DevConnection> {
  await using stack = new AsyncDisposableStack();
  const connection = stack.use(await DevConnection.open(options, signal));
  const clientId = `${options.workerId}-${newId()}`;
  const hello = encodeCommand({ cmd: "CONNECT", client_id: clientId, subscriptions });
  expectOk(await connection.command(hello, signal), "CONNECT");
  stack.move();
  return connection;
}

/**
 * Waits for the next message of a connection; undefined when none came within `waitMs`. What cannot
 * be read is logged and skipped. Throws the BrokerError after which the connection brings no more,
 * or the signal's reason when it aborts.
 */
export async function receive(
  connection: DevConnection,
  waitMs: number,
  log: BrokerLog,
  signal: AbortSignal,
): Promise<DevMessage | undefined> {
  const line = encodeCommand({ cmd: "RECEIVE", timeout_ms: waitMs });
  for (;;) {
    const answer = await connection.command(line, signal, waitMs + receiveGraceMs);
    switch (answer.status) {
      case "OK":
        if (answer.message) return answer.message;
        break;
      case "TIMEOUT":
        return undefined;
      case "UNREADABLE":
        logEvent(log, "message.unreadable", { reason: answer.reason });
        break;
      case "ERROR":
        // Whatever the broker has against a RECEIVE it will have against the next one.
        throw refusal("RECEIVE", answer);
    }
  }
}

/** User properties as the contract has them. */
export function propertiesOf(message: DevMessage): Readonly<Record<string, string>> {
  const properties = Object.entries(message.userProperties).map(
    ([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const,
  );
  return Object.fromEntries(properties);
}

/** Throws BrokerError unless the command was carried out. */
export function expectOk(answer: Answer, command: string): void {
  if (answer.status !== "OK") throw refusal(command, answer);
}

function refusal(command: string, answer: Exclude<Answer, { status: "OK" }>): BrokerError {
  switch (answer.status) {
    case "ERROR":
      return new BrokerError(`The broker refused ${command}: ${answer.code}: ${answer.message}`, {
        transient: answer.code !== "INVALID_COMMAND",
      });
    case "UNREADABLE":
      return new BrokerError(
        `The answer to ${command} is not one of a DevBroker: ${answer.reason}`,
        {
          transient: false,
        },
      );
    case "TIMEOUT":
      return new BrokerError(`The broker answered ${command} with TIMEOUT`, { transient: true });
  }
}
