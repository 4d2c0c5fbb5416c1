/**
 * Traces of whole workers, by a collector that receives OTLP over HTTP.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { encodeRequest } from "../../../harness/messages.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { callSteps } from "../../../worker/telemetry/call-follower.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { fetchMetrics } from "../../support/metrics/metrics-page.ts";
import { patience } from "../../support/patience.ts";
import { type Collector, startCollector } from "../../support/tracing/collector.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";
import { namespace, startRig } from "../../support/workers/rig.ts";

const traced = `
def run(ctx):
    return {"traceparent": ctx.traceparent, "tracestate": ctx.tracestate}

def calls(ctx):
    return dict(ctx.tools.sync.call("traced"))

def fails(ctx):
    raise ValueError("no")
`;

const traceId = "0af7651916cd43dd8448eb211c80319c";
const callerSpan = "b7ad6b7169203331";
const sampled = `00-${traceId}-${callerSpan}-01`;
const unsampled = `00-${traceId}-${callerSpan}-00`;

/** A worker that exports at once to `endpoint`, if there is one. */
async function setUp(
  endpoint: string | undefined,
  environment: Readonly<Record<string, string>> = {},
) {
  const rig = await startRig({
    tools: {
      traced: {
        ...{ module: "traced", function: "run" },
        allowed_callers: ["direct", "programmatic"],
      },
      calls: { module: "traced", function: "calls", gateway: { tools: ["traced"] } },
      fails: { module: "traced", function: "fails" },
    },
    files: { "traced.py": traced },
    environment: {
      ...(endpoint !== undefined && { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }),
      OTEL_BSP_SCHEDULE_DELAY: "20",
      ...environment,
    },
  });
  onTestFinished(() => rig[Symbol.asyncDispose]());
  return rig;
}

/** The answer to one call, with its user properties. */
async function callWith(
  { broker: { host, port } }: Awaited<ReturnType<typeof setUp>>,
  tool: string,
  properties: Readonly<Record<string, string>>,
  id = "call",
) {
  const replyTo = responseTopic(namespace, "caller", id);
  const signal = AbortSignal.timeout(30_000);
  const options = { host, port, name: "caller", patterns: [replyTo] };
  await using client = await DevClient.connect(options, signal);
  const request = encodeRequest(id, "caller", { tool });
  await client.publish(invokeTopic(namespace, tool), request, { replyTo, ...properties }, signal);
  const { value } = await client.messages(signal).next();
  const { payload, userProperties } = value as { payload: Uint8Array; userProperties: object };
  const { result } = JSON.parse(Buffer.from(payload).toString()) as {
    result?: { tool_result: { traceparent: string | null; tracestate: string | null } };
  };
  const { traceparent, tracestate } = result?.tool_result ?? {};
  return { userProperties, toolTraceparent: traceparent, toolTracestate: tracestate };
}

/** The spans of one call, once all have come. */
async function callOf({ spans }: Collector) {
  const root = await vi.waitFor(() => {
    const found = spans.find(({ kind }) => kind === 5);
    return found ?? expect.fail("no span of a delivery");
  }, patience);
  const children = spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
  return { root, children, child: (name: string) => children.find((span) => span.name === name) };
}

test("a call is a trace of its steps, which its caller, its tool and its answer belong to", async () => {
  await using collector = await startCollector();
  const rig = await setUp(collector.endpoint, {
    OTEL_RESOURCE_ATTRIBUTES: "service.name=other,team=tools",
    OTEL_SERVICE_NAME: "worker-of-tools",
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=hush",
  });
  const { userProperties, toolTraceparent, toolTracestate } = await callWith(rig, "traced", {
    traceparent: sampled,
    tracestate: "v=1",
  });
  const { root, children, child } = await callOf(collector);

  expect(root).toMatchObject({
    traceId,
    parentSpanId: callerSpan,
    name: "process traced",
    status: 0,
    attributes: {
      "messaging.system": "devbroker",
      "messaging.operation.type": "process",
      "str.tool": "traced",
      "str.profile": "standard",
      "str.start": "cold",
      "str.outcome": "ok",
      "str.settlement": "accepted",
      "str.delivery_count": 1,
    },
    resource: {
      "service.name": "worker-of-tools",
      "service.instance.id": "sandbox-worker-001",
      team: "tools",
      "str.namespace": namespace,
    },
  });
  expect(children.map(({ name }) => name)).toEqual(Object.keys(callSteps));
  expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
  expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(children.length + 1);
  // Each step begins where the one before ends.
  const edges = children.map(({ startNs }) => startNs);
  expect([...children.map(({ endNs }) => endNs)]).toEqual([...edges.slice(1), root.endNs]);
  expect(edges[0]).toBe(root.startNs);
  expect(Math.abs(Number(root.startNs / 1_000_000n) - Date.now())).toBeLessThan(60_000);

  expect(toolTraceparent).toBe(`00-${traceId}-${child("run")?.spanId}-01`);
  expect(toolTracestate).toBe("v=1");
  expect(userProperties).toEqual({
    timestamp: expect.anything() as unknown,
    traceparent: `00-${traceId}-${child("publish")?.spanId}-01`,
    tracestate: "v=1",
  });
  expect(collector.requests[0]).toMatchObject({
    url: "/v1/traces",
    headers: { "x-key": "hush", "content-type": "application/x-protobuf" },
  });
  expect(loggedFacts(rig.logLines, "call.finished")).toMatchObject([
    { traceId, id: "call", tool: "traced" },
  ]);
  expect(rig.logLines.join("")).not.toContain("hush");
});

test("a call that a tool makes belongs to the step in which that tool runs", async () => {
  await using collector = await startCollector();
  const rig = await setUp(collector.endpoint);
  const { toolTraceparent } = await callWith(rig, "calls", { traceparent: sampled });
  expect(toolTraceparent).toMatch(new RegExp(`^00-${traceId}-`));
  await vi.waitFor(() => {
    const { spans } = collector;
    const process = (tool: string) => spans.find(({ name }) => name === `process ${tool}`);
    const [outer, inner] = [process("calls"), process("traced")];
    const run = spans.find(({ spanId }) => spanId === inner?.parentSpanId);
    expect(run).toMatchObject({ name: "run", parentSpanId: outer?.spanId });
  }, patience);
});

test("a call without a trace begins one, and a failed call says how", async () => {
  await using collector = await startCollector();
  const rig = await setUp(collector.endpoint);
  await rig.call("fails");
  const { root } = await callOf(collector);
  expect(root).toMatchObject({
    parentSpanId: "",
    status: 2,
    attributes: { "str.outcome": "EXECUTION_ERROR", "error.type": "EXECUTION_ERROR" },
  });
  expect(loggedFacts(rig.logLines, "call.failed")).toMatchObject([{ traceId: root.traceId }]);
});

test("the last spans are exported when the worker ends", async () => {
  await using collector = await startCollector();
  const rig = await setUp(collector.endpoint, { OTEL_BSP_SCHEDULE_DELAY: "3600000" });
  await rig.call("traced");
  expect(collector.spans).toEqual([]);
  await rig.worker[Symbol.asyncDispose]();
  expect(collector.spans).toHaveLength(8);
});

test("a caller that traces nothing gets no spans, and its trace goes on", async () => {
  await using collector = await startCollector();
  const rig = await setUp(collector.endpoint);
  const { userProperties, toolTraceparent } = await callWith(rig, "traced", {
    traceparent: unsampled,
  });
  const ofTrace = expect.stringMatching(new RegExp(`^00-${traceId}-\\w{16}-00$`)) as unknown;
  expect(toolTraceparent).toEqual(ofTrace);
  expect(userProperties).toMatchObject({ traceparent: ofTrace });
  await rig.worker[Symbol.asyncDispose]();
  expect(collector.requests).toEqual([]);
});

test("without a collector, tool, answer and log have the caller's trace", async () => {
  const rig = await setUp(undefined);
  const trace = { traceparent: sampled, tracestate: "v=1" };
  const { userProperties, toolTraceparent, toolTracestate } = await callWith(rig, "traced", trace);
  expect([toolTraceparent, toolTracestate]).toEqual([sampled, "v=1"]);
  expect(userProperties).toMatchObject(trace);
  expect(loggedFacts(rig.logLines, "call.finished")).toMatchObject([{ traceId, id: "call" }]);
  const none = await callWith(rig, "traced", { tracestate: "v=1" }, "other");
  expect([none.toolTraceparent, none.toolTracestate]).toEqual([null, null]);
  expect(Object.keys(none.userProperties)).toEqual(["timestamp"]);
});

test.for([
  ["refuses", false, "the collector answers with 401"],
  ["is not there", true, "ECONNREFUSED"],
] as const)(
  "a collector that %s is logged once, and keeps no call and no end waiting; its spans count as lost",
  { tags: "full" },
  async ([, isGone, reason]) => {
    const collector = await startCollector((response) => response.writeHead(401).end());
    if (isGone) await collector[Symbol.asyncDispose]();
    else onTestFinished(() => collector[Symbol.asyncDispose]());
    const [port] = (await freePorts(1)) as [number];
    const rig = await setUp(collector.endpoint, {
      OTEL_EXPORTER_OTLP_TIMEOUT: "100",
      HEALTH_PORT: String(port),
      HEALTH_HOST: "127.0.0.1",
    });
    const untilLost = async (spans: number) =>
      vi.waitFor(
        async () =>
          expect(await fetchMetrics(port)).toMatchObject({ str_spans_dropped_total: spans }),
        patience,
      );
    await untilLost(0);
    const logged = () => loggedFacts(rig.logLines, "tracing.failed");
    expect(await rig.call("traced")).toMatchObject({ kind: "success" });
    await vi.waitFor(
      () =>
        expect(logged()).toMatchObject([{ reason: expect.stringContaining(reason) as unknown }]),
      patience,
    );
    await untilLost(8);
    await rig.call("traced");
    await untilLost(16);
    await rig.worker[Symbol.asyncDispose]();
    expect(logged()).toHaveLength(1);
  },
);

test("the page of metrics shows the trace of a recorded call", { tags: "full" }, async () => {
  await using collector = await startCollector();
  const [port] = await freePorts(1);
  const environment = { HEALTH_PORT: String(port), HEALTH_HOST: "127.0.0.1" };
  const rig = await setUp(collector.endpoint, environment);
  await callWith(rig, "traced", { traceparent: sampled });
  await callWith(rig, "fails", { traceparent: unsampled }, "unsampled");
  const exemplars = async (): Promise<readonly string[]> => {
    const headers = { accept: "application/openmetrics-text" };
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
    expect(text).toContain('str_call_duration_seconds_count{tool="fails"} 1\n');
    return text.split("\n").filter((line) => line.includes(" # {"));
  };
  await vi.waitFor(async () => expect(await exemplars()).toHaveLength(1), patience);
  const [shown] = await exemplars();
  expect(shown).toMatch(/^str_call_duration_seconds_bucket\{tool="traced",le="[\d.]+"\} 1 # /);
  expect(shown).toContain(`{trace_id="${traceId}"}`);
});
