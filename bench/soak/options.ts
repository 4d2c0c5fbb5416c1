/**
 * The options of a soak on the command line.
 */
import { brokerKindOf } from "../brokers.ts";
import type { SoakOptions } from "./run.ts";

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
  return {
    minutes: positive("--soak", soak),
    callsPerSecond: positive("--rate", rate ?? defaultRate),
    broker: brokerKindOf(broker ?? "dev"),
  };
}

function positive(option: string, text: string): number {
  const number = Number(text);
  if (!Number.isFinite(number) || number <= 0)
    throw new Error(`${option}: not a number above 0: ${text}`);
  return number;
}
