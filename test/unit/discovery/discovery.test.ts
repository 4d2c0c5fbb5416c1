/**
 * Which messages a worker broadcasts.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import type { OutboundMessage } from "../../../worker/broker/broker.ts";
import { DescribedTools } from "../../../worker/discovery/described-tools.ts";
import { Discovery, broadcastMs } from "../../../worker/discovery/discovery.ts";
import { answerRequests } from "../../../worker/discovery/requests.ts";
import { maxMessageBytes } from "../../../worker/protocol/limits.ts";
import type { Logger } from "../../../worker/telemetry/logger.ts";
import { patience } from "../../support/patience.ts";
import { keptLog } from "../../support/workers/kept-log.ts";
import { HandClock } from "../broker/hand-clock.ts";
import { tool } from "../manifest/fixtures.ts";

const parameters = { type: "object" };
const instructions = "x".repeat(maxMessageBytes);
const large = tool("large", { description: "d", described: { parameters, instructions } });

test("a description that no message can hold is reported, and those of other tools go out", async () => {
  const clock = new HandClock();
  const log = keptLog();
  const published: string[] = [];
  const session = {
    publish: (message: OutboundMessage) => {
      published.push(message.topic.replace("ns/a2a/v1/sam_remote_tool/", ""));
      return Promise.resolve("confirmed" as const);
    },
    subscribe: (_pattern: string, over: AbortSignal) =>
      new Promise<never>((_, reject) => {
        over.addEventListener("abort", () => reject(over.reason as Error));
      }),
  };
  using tools = new DescribedTools({ clock, log: log as unknown as Logger });
  tools.follow([large, tool("small", { description: "d", described: { parameters } })]);
  const discovery = new Discovery({
    ...{ session, namespace: "ns", tools, resolve: () => undefined, clock },
    log: log as unknown as Logger,
  });
  onTestFinished(() => discovery[Symbol.asyncDispose]());
  await vi.waitFor(() => expect(published).toHaveLength(2), patience);
  expect(published).toEqual(["failed_discovery/large", "init/small"]);
  clock.advance(broadcastMs);
  await vi.waitFor(() => expect(published).toHaveLength(3), patience);
  expect(published.slice(2)).toEqual(["init/small"]);
  expect(log.lines).toMatchObject([
    {
      event: "discovery.too_large",
      facts: { tool: "large", reason: expect.stringContaining("at most 10000000") as string },
    },
  ]);
});

test("a request for a description that no message can hold is answered with an error", async () => {
  const clock = new HandClock();
  const log = keptLog() as unknown as Logger;
  const answers: unknown[] = [];
  const session = {
    publish: ({ payload }: OutboundMessage) => {
      answers.push(JSON.parse(Buffer.from(payload).toString()));
      return Promise.resolve("confirmed" as const);
    },
  };
  using tools = new DescribedTools({ clock, log });
  tools.follow([large]);
  const method = "sam_remote_tool/init_request";
  const request = {
    topic: "ns/a2a/v1/sam_remote_tool/init_request/large",
    payload: Buffer.from(JSON.stringify({ id: "1", method, params: {} })),
    properties: { replyTo: "reply" },
  };
  const heard = {
    dropped: 0,
    async *[Symbol.asyncIterator]() {
      yield await Promise.resolve(request);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const parts = { session, namespace: "ns", tools, resolve: () => large, log };
  const { signal } = new AbortController();
  await answerRequests(parts, heard, "init_request", "newer", signal);
  await vi.waitFor(() => expect(answers).toHaveLength(1), patience);
  expect(answers).toMatchObject([{ id: "1", error: { code: "RESOURCE_EXHAUSTED" } }]);
});
