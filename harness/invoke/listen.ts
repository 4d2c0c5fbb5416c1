/**
 * `harness listen`: prints each message of a pattern.
 */
import type {
  BrokerSession,
  BrokerSubscription,
  HeardMessage,
} from "../../worker/broker/broker.ts";
import {
  type Json,
  JsonError,
  type JsonLimits,
  parseJson,
} from "../../worker/support/json/json.ts";
import { openCommandBroker } from "../options/broker-option.ts";
import { connectionEnd } from "../client/connection-end.ts";
import { type Context, exit } from "../context.ts";
import { printable } from "./screen.ts";

/** Prefix of the listener's name at the broker. */
const listenerName = "harness-listen";

/** Bounds of a payload that is printed as JSON; a larger one is printed as text. */
const payloadLimits: JsonLimits = { depth: 200, values: 1_000_000 };

/** The command line. */
export interface ListenOptions {
  /** As `chooseBroker` reads it. */
  readonly broker: string;
  readonly namespace: string;
  readonly json?: boolean;
}

/** Prints until the context's signal, its regular end. Rejects with BrokerError or UsageError. */
export async function listen(
  pattern: string,
  { broker: text, namespace, json = false }: ListenOptions,
  context: Context,
): Promise<number> {
  const { err, signal } = context;
  const { broker, label } = await openCommandBroker(
    text,
    { namespace, name: listenerName },
    context,
  );
  try {
    await using session = await broker.connect([], signal);
    await using heard = await session.subscribe(pattern, signal);
    err.line(`Listening to ${printable(pattern)} on ${printable(label)}.`);
    await print(heard, json, context);
    await throwEnd(session, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return exit.success;
}

/** Prints messages until the end of the subscription, or the context's signal. */
async function print(heard: BrokerSubscription, json: boolean, context: Context): Promise<void> {
  const { out, err, signal } = context;
  signal.throwIfAborted();
  const stop = (): void => void heard[Symbol.asyncDispose]();
  signal.addEventListener("abort", stop, { once: true });
  let dropped = 0;
  for await (const message of heard) {
    out.line(printable(json ? asJson(message) : asText(message, context)));
    await out.ready(signal);
    if (heard.dropped > dropped) {
      err.line(`${heard.dropped - dropped} messages were lost: they came too fast`);
      dropped = heard.dropped;
    }
  }
  signal.removeEventListener("abort", stop);
}

async function throwEnd(session: BrokerSession, signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  throw connectionEnd(await session.closed);
}

function asJson({ topic, properties, payload }: HeardMessage): string {
  return JSON.stringify({ topic, properties, payload: decode(payload) });
}

function asText({ topic, properties, payload }: HeardMessage, { clock }: Context): string {
  const time = new Date(clock.nowMs()).toISOString();
  const document = decode(payload);
  return [
    `${time} ${topic}`,
    ...Object.entries(properties).map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`),
    JSON.stringify(document, undefined, 2).replaceAll(/^/gm, "  "),
  ].join("\n");
}

/** The payload as JSON, or as text. */
function decode(payload: Uint8Array): Json {
  try {
    return parseJson(payload, payloadLimits);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return Buffer.from(payload).toString();
  }
}
