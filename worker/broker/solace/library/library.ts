/**
 * The client library, set up once for the process, and what its types leave out.
 */
import solace from "solclientjs";
import { systemClock } from "../../../support/clock.ts";
import { createRepeatFilter } from "../../../support/repeat-filter.ts";
import { logEvent } from "../../../telemetry/log-event.ts";
import type { BrokerLog } from "../../log.ts";

/** Logged characters of a library message: some quote whole lines of its code. */
const maxLogCharacters = 1_000;

const { LogLevel } = solace;
/** Its types do not have this. */
const subcodeNames = solace.ErrorSubcode as unknown as { nameOf(subcode: number): string };
let isReady = false;

/** The library. Its set-up is the process's: the first call decides where it logs. */
export function library(log: BrokerLog): typeof solace {
  if (isReady) return solace;
  isReady = true;
  // It says the same at every attempt to connect.
  const isNews = createRepeatFilter(systemClock);
  const warn = (...words: readonly unknown[]): void => {
    const message = words.map(String).join(" ").slice(0, maxLogCharacters);
    if (isNews(message)) logEvent(log, "broker.library_message", { message });
  };
  const ignore = (): void => {};
  solace.SolclientFactory.init({
    profile: solace.SolclientFactoryProfiles.version10_5,
    logLevel: LogLevel.WARN,
    logger: new solace.LogImpl(ignore, ignore, ignore, warn, warn, warn),
  });
  return solace;
}

/** A topic, or a pattern of topics. Throws the library's error when it is none. */
export function toTopic(name: string): solace.Destination {
  return solace.SolclientFactory.createTopicDestination(name);
}

/** Undefined for a failure without one, or of another origin. */
export function subcodeOf(failure: unknown): solace.ErrorSubcode | undefined {
  const { subcode, errorSubcode } = asFailure(failure);
  const code = errorSubcode ?? subcode;
  return typeof code === "number" ? code : undefined;
}

export function textOf(failure: unknown): string {
  const { infoStr, message } = asFailure(failure);
  for (const text of [infoStr, message]) {
    if (typeof text === "string" && text !== "") return text;
  }
  const subcode = subcodeOf(failure);
  return subcode === undefined ? String(failure) : subcodeNames.nameOf(subcode);
}

/** The key of the request that an event answers; the types have it for some events only. */
export function correlationKeyOf(event: unknown): string | undefined {
  const { correlationKey } = asFailure(event);
  return typeof correlationKey === "string" ? correlationKey : undefined;
}

/** The library spells the fields of failures in two ways. */
function asFailure(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
