/**
 * The options of a soak on the command line.
 */
import type { BrokerKind } from "../brokers.ts";
import type { SoakOptions } from "./run.ts";

const brokerKinds: readonly BrokerKind[] = ["dev", "amqp", "solace"];

/** Calls a second: a small part of what two cores answer. */
const defaultRate = "10";

/** The options of the command line, as text. */
export interface SoakArguments {
  readonly soak?: string | undefined;
  readonly rate?: string | undefined;
  readonly broker?: string | undefined;
}

/** Undefined without `--soak`. Throws for an option that is no number, or for no broker. */
export function soakOptions({ soak, rate, broker }: SoakArguments): SoakOptions | undefined {
  if (soak === undefined) {
    if (rate !== undefined || broker !== undefined)
      throw new Error("--rate and --broker need --soak MINUTES");
    return undefined;
  }
  const kind = brokerKinds.find((each) => each === (broker ?? "dev"));
  if (kind === undefined) throw new Error(`--broker: one of ${brokerKinds.join(", ")}`);
  return {
    minutes: positive("--soak", soak),
    callsPerSecond: positive("--rate", rate ?? defaultRate),
    broker: kind,
  };
}

function positive(option: string, text: string): number {
  const number = Number(text);
  if (!Number.isFinite(number) || number <= 0)
    throw new Error(`${option}: not a number above 0: ${text}`);
  return number;
}
