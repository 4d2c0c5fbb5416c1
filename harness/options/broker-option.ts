/**
 * The broker of the option `--broker`.
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

/** Attempts of a command per outage: a person can repeat it. */
const connectRetries = 1;

/** The broker of a command. */
export interface CommandBroker {
  readonly broker: Broker;
  /** Its address for people, without credentials. */
  readonly label: string;
}

/** Reads the option. Rejects with UsageError. */
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

/** Prints warnings: a lost connection, an unreadable message. */
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
