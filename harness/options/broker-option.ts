/**
 * The broker that a command was told by `--broker`.
 */
import type { Broker } from "../../worker/broker/broker.ts";
import type { BrokerLog } from "../../worker/broker/log.ts";
import { ConfigError } from "../../worker/config/config.ts";
import {
  type BrokerChoice,
  type ChoiceOptions,
  chooseBroker,
  openClientBroker,
} from "../client/broker-choice.ts";
import { type Context, UsageError } from "../context.ts";
import { type Screen, printable } from "../invoke/screen.ts";

/**
 * Attempts of a command to connect, and to connect again after a loss: people are there to try once
 * more.
 */
const connectRetries = 1;

/** A broker that a command can connect to. */
export interface CommandBroker {
  readonly broker: Broker;
  /** Where it is, without credentials. */
  readonly label: string;
}

/** Reads the option. Throws UsageError. */
export async function openCommandBroker(
  text: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { environment, err }: Context,
): Promise<CommandBroker> {
  const { config, label } = choose(text, { namespace, environment });
  const log = lossPrinter(err);
  const broker = await openClientBroker(config, { namespace, name, connectRetries, log });
  return { broker, label };
}

function choose(text: string, options: ChoiceOptions): BrokerChoice {
  try {
    return chooseBroker(text, options);
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** Shows warnings: a connection that was lost, a message that could not be read. */
function lossPrinter(err: Screen): BrokerLog {
  return {
    info: () => undefined,
    warn: (facts, message) => err.line(printable([message, ...reasonIn(facts)].join(": "))),
  };
}

function reasonIn(facts: object): readonly string[] {
  const { err, reason } = facts as { readonly err?: Partial<Error>; readonly reason?: string };
  const text = err?.message ?? reason;
  return text === undefined ? [] : [text];
}
