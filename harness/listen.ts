/**
 * `harness listen`: every message of a pattern, as it comes.
 */
import type { DevMessage } from "../worker/broker/dev/wire.ts";
import { type Json, JsonError, type JsonLimits, parseJson } from "../worker/support/json.ts";
import { type BrokerAddress, DevClient } from "./client.ts";
import { type Context, exit } from "./context.ts";
import { printable } from "./screen.ts";

/** Bounds of a payload that is shown as JSON; a larger one is shown as the text it came as. */
const payloadLimits: JsonLimits = { depth: 200, values: 1_000_000 };

/** The command line. */
export interface ListenOptions {
  readonly broker: BrokerAddress;
  readonly json?: boolean;
}

/** Prints until the context's signal; that is its regular end. Throws BrokerError. */
export async function listen(
  pattern: string,
  options: ListenOptions,
  context: Context,
): Promise<number> {
  const { out, err, signal } = context;
  const { host, port } = options.broker;
  try {
    await using client = await DevClient.connect(
      {
        host,
        port,
        name: "harness-listen",
        patterns: [pattern],
        onUnreadable: (reason) => err.line(`a message could not be read: ${printable(reason)}`),
      },
      signal,
    );
    err.line(`Listening to ${printable(pattern)} on ${host}:${port}.`);
    for await (const message of client.messages(signal)) {
      out.line(printable(options.json ? asJson(message) : asText(message, context)));
      await out.ready(signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return exit.success;
}

function asJson({ topic, userProperties, payload }: DevMessage): string {
  return JSON.stringify({ topic, properties: userProperties, payload: decode(payload) });
}

function asText({ topic, userProperties, payload }: DevMessage, { clock }: Context): string {
  const time = new Date(clock.nowMs()).toISOString();
  const document = decode(payload);
  return [
    `${time} ${topic}`,
    ...Object.entries(userProperties).map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`),
    JSON.stringify(document, undefined, 2).replaceAll(/^/gm, "  "),
  ].join("\n");
}

/** The payload as JSON, or its text when it is none that can be shown. */
function decode(payload: Uint8Array): Json {
  try {
    return parseJson(payload, payloadLimits);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return Buffer.from(payload).toString();
  }
}
