/**
 * What traces, and the requests that export them, let out.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { encodeRequest } from "../../../harness/messages.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { patience } from "../../support/patience.ts";
import { startCollector } from "../../support/tracing/collector.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";
import { namespace, startRig } from "../../support/workers/rig.ts";

const canary = "canary-7f3a";

const telling = `
def run(ctx, text):
    ctx.send_status(text)
    print(text)
    raise ValueError(text)
`;

test("no span has what a caller or a tool chooses", { tags: "promise-R15" }, async () => {
  await using collector = await startCollector();
  await using rig = await startRig({
    tools: { telling: { module: "telling", function: "run" } },
    files: { "telling.py": telling },
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint },
  });
  const { host, port } = rig.broker;
  const signal = AbortSignal.timeout(30_000);
  const replyTo = responseTopic(namespace, canary, "call");
  const options = { host, port, name: "caller", patterns: [replyTo] };
  await using client = await DevClient.connect(options, signal);
  const call = { args: { text: canary }, userId: canary, sessionId: canary };
  const request = encodeRequest(canary, canary, { tool: "telling", ...call });
  const properties = { replyTo, statusTo: replyTo, clientId: canary, [canary]: canary };
  const context = { traceparent: `00-${canary}`, tracestate: `a=${canary}` };
  const valid = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` };
  const traced = { ...properties, ...valid, tracestate: `a=${canary}` };
  await client.publish(invokeTopic(namespace, "telling"), request, traced, signal);
  const withContext = { ...properties, ...context };
  const unserved = invokeTopic(namespace, canary);
  await client.publish(unserved, request, withContext, signal);
  await vi.waitFor(
    () => expect(loggedFacts(rig.logLines, "call.failed")).toHaveLength(1),
    patience,
  );
  await rig.worker[Symbol.asyncDispose]();
  expect(collector.spans.map(({ name }) => name)).toContain("process telling");
  const sent = Buffer.concat(collector.requests.map(({ body }) => body)).toString("latin1");
  expect(sent).not.toContain(canary);
});

test(
  "no log has a header of the collector, even one that the collector sends back",
  { tags: "promise-R15" },
  async () => {
    const collector = await startCollector((response, { headers }) => {
      response.writeHead(403, headers.authorization).end(headers.authorization);
    });
    onTestFinished(() => collector[Symbol.asyncDispose]());
    await using rig = await startRig({
      tools: { well: { function: "well" } },
      environment: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
        OTEL_EXPORTER_OTLP_HEADERS: `authorization=${canary}`,
        OTEL_BSP_SCHEDULE_DELAY: "20",
      },
    });
    await rig.call("well");
    const failures = () => loggedFacts(rig.logLines, "tracing.failed");
    await vi.waitFor(() => expect(failures()).toHaveLength(1), patience);
    expect(collector.requests[0]?.headers.authorization).toBe(canary);
    expect(rig.logLines.join("\n")).not.toContain(canary);
  },
);
