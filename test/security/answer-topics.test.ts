/**
 * What callers can make a worker publish: they choose the topics of answer and statuses.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { encodeRequest } from "../../harness/messages.ts";
import { cancelTopic, invokeTopic, responseTopic } from "../../worker/protocol/topics.ts";
import type { JsonObject } from "../../worker/support/json/json.ts";
import { DevClient } from "../support/brokers/dev-client.ts";
import { patience } from "../support/patience.ts";
import { ToolRuns, announcingTool } from "../support/workers/announcing-tool.ts";
import { loggedFacts } from "../support/workers/kept-log.ts";
import { namespace, startRig } from "../support/workers/rig.ts";

const saying = `
def run(ctx):
    ctx.send_status("do something")
    return {"replyTo": "elsewhere"}
`;

/** A worker with two tools, and a caller who hears what is published to `place`. */
async function setUp(place: string) {
  const tool = { module: "saying", function: "run" };
  const rig = await startRig({ tools: { tool, other: tool }, files: { "saying.py": saying } });
  onTestFinished(() => rig[Symbol.asyncDispose]());
  const { host, port } = rig.broker;
  const signal = AbortSignal.timeout(30_000);
  const client = await DevClient.connect({ host, port, name: "caller", patterns: [place] }, signal);
  onTestFinished(() => client[Symbol.asyncDispose]());
  return {
    rig,
    messages: client.messages(signal),
    call: (properties: Record<string, string>) =>
      client.publish(
        invokeTopic(namespace, "tool"),
        encodeRequest("call", "caller", { tool: "tool" }),
        properties,
        signal,
      ),
  };
}

test.each(["tool", "other"])(
  "an answer and a status that are sent where the calls of the tool %s come from are none",
  { tags: "promise-B4" },
  async (name) => {
    const place = invokeTopic(namespace, name);
    const { rig, call } = await setUp(place);
    await call({ replyTo: place, statusTo: place });
    const dropped = () => rig.logLines.filter((line) => line.includes("without a usable replyTo"));
    await vi.waitFor(() => expect(dropped()).toHaveLength(2), patience);
    expect(rig.logLines.filter((line) => line.includes("call.received"))).toHaveLength(1);
  },
);

test(
  "answers and statuses have no property that their caller chose but the context of its trace",
  { tags: "promise-B4" },
  async () => {
    const place = responseTopic(namespace, "caller", "call");
    const { call, messages } = await setUp(place);
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const others = { userId: "u", authToken: "t", [namespace]: "p" };
    const trace = { traceparent, tracestate: "a=b" };
    await call({ replyTo: place, statusTo: place, ...trace, ...others });
    const names: string[] = [];
    for await (const { userProperties } of messages) {
      names.push(...Object.keys(userProperties));
      if (names.length >= 3) break;
    }
    // The status comes first.
    expect(names).toEqual(["timestamp", "traceparent", "tracestate", "timestamp"]);
  },
);

test(
  "an answer and a status that are sent where a call is cancelled cancel nothing",
  { tags: ["promise-B4", "promise-B9"] },
  async () => {
    const runs = await ToolRuns.listen();
    const module = { module: "announcing", function: "announces", network: "host" } as const;
    await using rig = await startRig({
      tools: { tool: { module: "saying", function: "run" }, victim: module },
      files: { "saying.py": saying, [announcingTool.file]: announcingTool.source },
    });
    const { host, port } = rig.broker;
    const signal = AbortSignal.timeout(30_000);
    const replyTo = responseTopic(namespace, "caller", "victim");
    const [place, done] = [
      cancelTopic(namespace, "victim"),
      responseTopic(namespace, "caller", "done"),
    ];
    const options = { host, port, name: "caller", patterns: [replyTo, place, done] };
    await using client = await DevClient.connect(options, signal);
    const publish = (tool: string, args: JsonObject, properties: Record<string, string>) => {
      const request = encodeRequest(tool, "caller", { tool, args });
      return client.publish(invokeTopic(namespace, tool), request, properties, signal);
    };
    await publish("victim", { port: runs.port }, { replyTo });
    await runs.haveBegun("run");
    const messages = client.messages(signal);
    const next = async () => (await messages.next()).value;
    await publish("tool", {}, { replyTo: place, statusTo: place });
    expect([(await next()).topic, (await next()).topic]).toEqual([place, place]);
    // The worker receives this call after both.
    await publish("tool", {}, { replyTo: done });
    expect((await next()).topic).toBe(done);
    expect(loggedFacts(rig.logLines, "cancel.ignored")).not.toEqual([]);
    runs.finish();
    const answer = await next();
    expect(answer.topic).toBe(replyTo);
    expect(JSON.parse(Buffer.from(answer.payload).toString())).toHaveProperty("result");
  },
);
