/**
 * The options of a sizing on the command line.
 */
import { type BrokerKind, brokerKindOf, sharingBrokers } from "../brokers.ts";

/** What a sizing is like. */
export interface SizingOptions {
  readonly broker: BrokerKind;
}

/** The options of the command line. */
export interface SizingArguments {
  readonly sizing: boolean;
  readonly broker?: string | undefined;
}

/** Undefined without `--sizing`. Throws for no broker by which workers share calls. */
export function sizingOptions({ sizing, broker }: SizingArguments): SizingOptions | undefined {
  if (!sizing) return undefined;
  const kind = broker === undefined ? sharingBrokers[0] : brokerKindOf(broker);
  if (kind === undefined || !sharingBrokers.includes(kind))
    throw new Error(`--broker: one of ${sharingBrokers.join(", ")}`);
  return { broker: kind };
}
