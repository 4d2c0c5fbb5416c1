/**
 * The recorded exchanges of discovery, against a broker: two workers of a group, and an agent.
 */
import { readFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Broker, BrokerSession, HeardMessage } from "../../../worker/broker/broker.ts";
import { DescribedTools } from "../../../worker/discovery/described-tools.ts";
import { Discovery, broadcastMs } from "../../../worker/discovery/discovery.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { patience } from "../../support/patience.ts";
import { HandClock } from "../../unit/broker/hand-clock.ts";
import { tool } from "../../unit/manifest/fixtures.ts";

interface Golden {
  readonly exchanges: readonly {
    readonly generation: string;
    readonly topic: string;
    readonly properties: Readonly<Record<string, string | number>>;
    readonly request: object;
    readonly answer: object;
  }[];
  readonly notifications: readonly { readonly topic: string; readonly payload: object }[];
}

const text = readFileSync(new URL("../../fixtures/golden/discovery.json", import.meta.url), "utf8");

const weather: ToolEntry = tool("weather", {
  description: "The weather of a city.",
  described: {
    instructions: "Give the city in English.",
    artifactParameters: new Map([["map", { isList: false, isOptional: true }]]),
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", exclusiveMinimum: 0 } },
      required: ["city"],
      additionalProperties: false,
    },
  },
});

/** Its code cannot be described, and says so in its own words. */
const broken = tool("broken");
const failure = new InvocationError("IMPORT_ERROR", "No module named x", { isToolsText: true });

/** Where the suite runs; the broker is the caller's. */
export interface Place {
  readonly broker: Broker;
  /** Without a slash at the end. */
  readonly namespace: string;
}

/** Registers the test of a broker. */
export function testDiscovery(name: string, open: () => Promise<Place>): void {
  test(`is what agents of all generations know, over ${name}`, async () => {
    const { broker, namespace } = await open();
    const golden = JSON.parse(text.replaceAll("{ns}", namespace)) as Golden;
    const agent = await connect(broker);
    const heard: HeardMessage[] = [];
    const base = `${namespace}/a2a/v1/sam_remote_tool`;
    for (const pattern of ["response/AgentA/>", "init/>", "removed/>", "failed_discovery/>"]) {
      const subscription = await agent.subscribe(`${base}/${pattern}`, signal());
      void collect(subscription, heard);
    }
    const clock = new HandClock();
    const workers = [await work(broker, namespace, clock), await work(broker, namespace, clock)];
    const on = (topic: string) => heard.filter((message) => message.topic === topic).map(jsonOf);
    const [broadcast, removed, failed] = golden.notifications;
    if (broadcast === undefined || removed === undefined || failed === undefined)
      throw new Error("no notifications");

    await vi.waitFor(() => expect(on(broadcast.topic)).toHaveLength(2), patience);
    const twice = [failed.payload, failed.payload];
    await vi.waitFor(() => expect(on(failed.topic)).toEqual(twice), patience);
    expect(on(`${base}/init/broken`)).toEqual([]);
    for (const { topic, properties, request, answer } of golden.exchanges) {
      const message = { topic, payload: Buffer.from(JSON.stringify(request)), properties };
      await agent.publish(message, signal());
      const replyTo = String(properties["replyTo"]);
      await vi.waitFor(() => expect(on(replyTo)).toHaveLength(2), patience);
      for (const received of on(replyTo)) expect(received).toMatchObject(answer);
    }
    clock.advance(broadcastMs);
    // With the request of the early agent, which has the broadcasts' topic.
    await vi.waitFor(() => expect(on(broadcast.topic)).toHaveLength(5), patience);
    for (const received of on(broadcast.topic))
      if (!("id" in received)) expect(received).toEqual(broadcast.payload);
    workers[0]?.removed(["weather"]);
    await vi.waitFor(() => expect(on(removed.topic)).toEqual([removed.payload]), patience);
    expect(JSON.stringify(heard.map(jsonOf))).not.toContain("ctx_facade_param_name");
  });
}

async function connect(broker: Broker): Promise<BrokerSession> {
  const session = await broker.connect([], signal());
  onTestFinished(() => session[Symbol.asyncDispose]());
  return session;
}

async function work(broker: Broker, namespace: string, clock: HandClock): Promise<Discovery> {
  const session = await connect(broker);
  const log = createLogger("silent", 1);
  const tools = new DescribedTools({ describe: () => Promise.reject(failure), clock, log });
  onTestFinished(() => tools[Symbol.dispose]());
  tools.follow([weather, broken]);
  const resolve = (name: string) => (name === "weather" ? weather : undefined);
  const subscribed: string[] = [];
  const discovery = new Discovery({
    session: {
      publish: (message, over) => session.publish(message, over),
      subscribe: async (pattern, over) => {
        const subscription = await session.subscribe(pattern, over);
        subscribed.push(pattern);
        return subscription;
      },
    },
    ...{ namespace, tools, resolve, clock, log },
  });
  onTestFinished(() => discovery[Symbol.asyncDispose]());
  await vi.waitFor(() => expect(subscribed).toHaveLength(2), patience);
  return discovery;
}

async function collect(
  subscription: AsyncIterable<HeardMessage>,
  heard: HeardMessage[],
): Promise<void> {
  for await (const message of subscription) heard.push(message);
}

function jsonOf({ payload }: HeardMessage): object {
  return JSON.parse(Buffer.from(payload).toString()) as object;
}

function signal(): AbortSignal {
  return AbortSignal.timeout(patience.timeout);
}
