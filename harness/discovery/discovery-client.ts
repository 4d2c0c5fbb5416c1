/**
 * Asks the workers of a broker what their tools are.
 */
import type { Broker, BrokerSession, BrokerSubscription } from "../../worker/broker/broker.ts";
import { encodeDiscoveryRequest } from "../../worker/protocol/discovery/messages.ts";
import {
  discoveryTopic,
  parseDiscoveryTopic,
  responseTopic,
} from "../../worker/protocol/topics.ts";
import { newUuid } from "../../worker/support/ids.ts";
import { type JsonObject, isJsonObject, parseJson } from "../../worker/support/json/json.ts";
import { abortable } from "../../worker/support/timeout.ts";
import { CommandError } from "../context.ts";

/** What a worker says of a tool. */
export interface ToolFacts {
  readonly description: string | undefined;
  /** In the form for agents; undefined where it is not known. */
  readonly parameters: JsonObject | undefined;
  /** JSON Schemas of parameters, result and configuration, by these names. */
  readonly schemas: JsonObject;
  /** `is_list` and `is_optional` by parameter. */
  readonly artifactParameters: JsonObject;
}

/** Who asks, and where. */
export interface DiscoveryOptions {
  readonly namespace: string;
  /** Of the topics of the answers. */
  readonly agent: string;
}

/** Its owner disposes it. */
export class DiscoveryClient implements AsyncDisposable {
  readonly #session: BrokerSession;
  readonly #owned: AsyncDisposable;
  readonly #options: DiscoveryOptions;
  readonly #waiting = new Map<string, (message: JsonObject) => void>();
  readonly #heard = new Set<string>();

  private constructor(session: BrokerSession, owned: AsyncDisposable, options: DiscoveryOptions) {
    this.#session = session;
    this.#owned = owned;
    this.#options = options;
  }

  /** Connects and subscribes. Throws BrokerError, or the signal's reason. */
  static async on(
    broker: Broker,
    options: DiscoveryOptions,
    signal: AbortSignal,
  ): Promise<DiscoveryClient> {
    await using stack = new AsyncDisposableStack();
    const { namespace, agent } = options;
    const session = stack.use(await broker.connect([], signal));
    const topics = [responseTopic(namespace, agent, ">"), discoveryTopic(namespace, "init", ">")];
    const [answers, broadcasts] = await Promise.all(
      topics.map(async (topic) => stack.use(await session.subscribe(topic, signal))),
    );
    const client = new DiscoveryClient(session, stack.move(), options);
    void client.#listen(answers, ({ topic, payload }) => client.#onAnswer(topic, payload));
    void client.#listen(broadcasts, ({ topic }) => {
      const tool = parseDiscoveryTopic(namespace, "init", topic);
      if (tool !== undefined) client.#heard.add(tool);
    });
    return client;
  }

  /** Tools that were broadcast so far. */
  get heard(): ReadonlySet<string> {
    return this.#heard;
  }

  /** Asks for a tool. Rejects with CommandError for an error, or the signal's reason. */
  async ask(tool: string, toolConfig: JsonObject, signal: AbortSignal): Promise<ToolFacts> {
    const { namespace, agent } = this.#options;
    const id = newUuid();
    const replyTo = responseTopic(namespace, agent, id);
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    this.#waiting.set(replyTo, resolve);
    try {
      const topic = discoveryTopic(namespace, "init_request", tool);
      const payload = encodeDiscoveryRequest(id, tool, toolConfig);
      await this.#session.publish({ topic, payload, properties: { replyTo } }, signal);
      return factsIn(tool, await abortable(promise, signal));
    } finally {
      this.#waiting.delete(replyTo);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }

  async #listen(
    subscription: BrokerSubscription | undefined,
    hear: (message: { readonly topic: string; readonly payload: Uint8Array }) => void,
  ): Promise<void> {
    for await (const message of subscription ?? []) hear(message);
  }

  #onAnswer(topic: string, payload: Uint8Array): void {
    const resolve = this.#waiting.get(topic);
    const message = resolve && parseJson(payload);
    if (isJsonObject(message)) resolve?.(message);
  }
}

function factsIn(tool: string, { result, error }: JsonObject): ToolFacts {
  if (!isJsonObject(result)) {
    const reason = isJsonObject(error) ? error["message"] : "the answer has no result";
    throw new CommandError(`${tool} is not described: ${JSON.stringify(reason)}`);
  }
  const { description, parameters, json_schema: schemas, artifact_params: artifacts } = result;
  return {
    description: typeof description === "string" ? description : undefined,
    parameters: isJsonObject(parameters) ? parameters : undefined,
    schemas: isJsonObject(schemas) ? schemas : {},
    artifactParameters: isJsonObject(artifacts) ? artifacts : {},
  };
}
