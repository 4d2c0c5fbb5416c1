/**
 * OpenTelemetry's own classes read what a worker exports, as our reader of OTLP does.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { pypiPackages, python } from "../../support/pypi-packages.ts";
import { startCollector } from "../../support/tracing/collector.ts";
import { startRig } from "../../support/workers/rig.ts";

const reader = `
import json, sys
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
request = ExportTraceServiceRequest.FromString(sys.stdin.buffer.read())
print(json.dumps([
    {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_span_id.hex(),
        "name": span.name,
        "kind": span.kind,
        "startNs": str(span.start_time_unix_nano),
        "endNs": str(span.end_time_unix_nano),
        "attributes": {
            one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes
        },
        "status": span.status.code,
    }
    for resource in request.resource_spans
    for scope in resource.scope_spans
    for span in scope.spans
]))
`;

test("spans are read by OpenTelemetry's classes for Python", async (context) => {
  const packages = await pypiPackages(context, ["opentelemetry-proto==1.45.2"]);
  await using collector = await startCollector();
  await using rig = await startRig({
    tools: { well: { function: "well" } },
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint },
  });
  await rig.call("well");
  await rig.worker[Symbol.asyncDispose]();
  const running = promisify(execFile)(python, ["-c", reader], {
    env: { PYTHONPATH: packages },
  });
  running.child.stdin!.end(collector.requests[0]!.body);
  const read: unknown = JSON.parse((await running).stdout);
  expect(read).toEqual(
    collector.spans.map(({ resource: _, startNs, endNs, ...span }) => ({
      ...span,
      startNs: String(startNs),
      endNs: String(endNs),
    })),
  );
  expect(read).toHaveLength(8);
});
