/**
 * Prometheus' own tool reads the page of metrics, and knows better names for none of them.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { CallCounts } from "../../../worker/telemetry/metrics/call-counts.ts";
import { EgressCounts } from "../../../worker/telemetry/metrics/egress-counts.ts";
import { exposition } from "../../../worker/telemetry/metrics/exposition.ts";
import { processSamples } from "../../../worker/telemetry/metrics/process-samples.ts";
import { debianProgram } from "../../support/metrics/debian-program.ts";
import { noSamples } from "../../support/metrics/no-samples.ts";

/** What it prints, and how it ends. */
async function check(promtool: string, page: string): Promise<{ code: unknown; stderr: string }> {
  const running = promisify(execFile)(promtool, ["check", "metrics"]);
  running.child.stdin!.end(page);
  const ended = (error: unknown) => error as { code: unknown; stderr: string };
  const { code = 0, stderr } = await running.then((done) => ({ code: 0, ...done }), ended);
  return { code, stderr };
}

test("promtool accepts the page, and finds nothing to mend", async (context) => {
  const promtool = await debianProgram(context, "prometheus", "usr/bin/promtool");
  const counts = new EgressCounts();
  counts.serve(["weather", "a-tool.with_odd-name"]);
  for (const tool of ["weather", "a-tool.with_odd-name"])
    counts.of(tool).ended({ sentBytes: 1, receivedBytes: 2 });
  const calls = new CallCounts(() => performance.now());
  calls.serve(["weather"]);
  const call = calls.follow();
  call.resolved("weather");
  call.under("standard");
  call.end({ outcome: "ok", settlement: "accepted" });
  const counted = { ...counts.samples, ...calls.samples, ...processSamples };
  const { text } = await exposition({ ...noSamples, ...counted })();
  expect(await check(promtool, text)).toEqual({ code: 0, stderr: "" });
  // It would say so.
  const camel = text.replaceAll("str_egress_bytes_total", "strEgressBytes");
  expect(await check(promtool, camel)).toMatchObject({ code: 3 });
  expect(await check(promtool, `${text}\nstr_x{`)).toMatchObject({ code: 1 });
});
