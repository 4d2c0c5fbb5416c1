import { Writable } from "node:stream";
import { test } from "vitest";
import { EventStreams } from "../../../worker/console/http/event-streams.ts";
import { RecentCalls } from "../../../worker/console/calls/recent-calls.ts";
import { LocalCalls } from "../../../worker/console/calls/local-session.ts";
import { OwnCalls } from "../../../worker/console/calls/own-calls.ts";
const out = (...a: unknown[]) => process.stderr.write("REVIEW " + a.map(x=>typeof x==="string"?x:JSON.stringify(x)).join(" ") + "\n");
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };
function fake() { let text = ""; const w: any = new Writable({ write(c, _e, d) { text += c; if (text.length > 5e6) text = text.slice(-1e6); d(); } }); w.writeHead = () => w; w.text = () => text; return w; }
const limits = Array.from({ length: 11 }, (_, i) => ({ limit: "limit" + i, bound: 1, unit: "bytes", by: "kernel" }));
function callOnce(calls: RecentCalls) {
  const f = calls.follow({ deliveryCount: 1, queue: "q", correlationId: undefined, traceparent: undefined });
  f.resolved("t"); f.enter("queue"); f.under("p"); f.enter("acquire"); f.enter("stage"); f.enter("run");
  f.ran({ start: "cold", backend: "b", limits, unenforced: [], cpuMs: 1, peakMemoryBytes: 1 }); f.enter("collect"); f.enter("publish"); f.end({ outcome: "ok", settlement: "accepted" });
}
test("backlog", async () => {
  const calls = new RecentCalls({ clock, keepsOutput: true, isOwn: () => false });
  const parts: any = { view: () => ({ x: 1 }), calls, samples: { all: [], onSample: () => ({ [Symbol.dispose]() {} }) } };
  const streams = new EventStreams(parts);
  const page = fake(); streams.open(page);
  const h0 = process.memoryUsage().heapUsed; let made = 0; const t0 = performance.now();
  while (performance.now() - t0 < 6000) { for (let i = 0; i < 20; i++) { callOnce(calls); made++; } await new Promise(r => setTimeout(r, 8)); }
  const ids = [...page.text().matchAll(/event: call\ndata: (.*)/g)].map(m => JSON.parse(m[1]).number);
  out("calls made", made, "newest number told to the page", Math.max(...ids), "heap +MB", (process.memoryUsage().heapUsed - h0) / 1e6);
  const t1 = performance.now(); for (let i = 0; i < 20000; i++) callOnce(calls); out("us per call with page", (performance.now() - t1) / 20);
  streams[Symbol.dispose]();
  const t2 = performance.now(); for (let i = 0; i < 20000; i++) callOnce(calls); out("us per call without page", (performance.now() - t2) / 20);
}, 30000);
test("state", () => {
  let state = 1; const calls = new RecentCalls({ clock, keepsOutput: true, isOwn: () => false });
  const streams = new EventStreams({ view: () => ({ x: state }), calls, samples: { all: [], onSample: () => ({ [Symbol.dispose]() {} }) } } as any);
  const first = fake(); streams.open(first); state = 2; const second = fake(); streams.open(second); streams.tellState(); streams.tellState();
  out("first page's states", [...first.text().matchAll(/data: ({"x".*)/g)].map((m: any) => m[1]), "second", [...second.text().matchAll(/data: ({"x".*)/g)].map((m: any) => m[1]));
});
test("ended session", async () => {
  const local = new LocalCalls(); const end = Promise.withResolvers<any>();
  const j = local.joined({ redelivers: true, closed: new Promise(() => {}), deliveries: { [Symbol.asyncIterator]: () => ({ next: () => end.promise }) }, publish: async () => "confirmed", subscribe: async () => { throw 0; }, pause: async () => {} } as any);
  const it = j.deliveries[Symbol.asyncIterator](); const p = it.next(); end.resolve({ done: true, value: undefined }); out("ended", await p);
  const own = new OwnCalls("ns", local); out("make after the deliveries ended", own.make({ tool: "t", arguments: {}, inputs: {} } as any) !== undefined);
});
test("memory of outputs", () => {
  const calls = new RecentCalls({ clock, keepsOutput: true, isOwn: () => false });
  globalThis.gc?.(); const b = process.memoryUsage();
  const chunk = Buffer.from("\u4e2d".repeat(21845));
  for (let i = 0; i < 200; i++) { const f = calls.follow({ deliveryCount: 1, queue: "q", correlationId: undefined, traceparent: undefined });
    for (let k = 0; k < 8; k++) { f.printed?.("stdout", chunk); f.printed?.("stderr", chunk); }
    for (let k = 0; k < 100; k++) f.status?.(String.fromCharCode(0x4e00 + k) + "\u4e2d".repeat(3999) + Math.random());
    f.end({ outcome: "ok", settlement: "accepted" }); }
  globalThis.gc?.(); const a = process.memoryUsage(); out("200 ended calls heap +MB", (a.heapUsed - b.heapUsed) / 1e6, "gc", !!globalThis.gc, calls.views.length);
});
test("isOwn memory", () => {
  const own = new OwnCalls("ns", { deliver: (c: any) => { c.onAnswer(Buffer.from('{"result":[' + "[],".repeat(900000) + "1]}")); c.onSettled("accepted"); return true; } });
  globalThis.gc?.(); const b = process.memoryUsage(); const t = performance.now();
  for (let i = 0; i < 11; i++) own.make({ tool: "t", arguments: {}, inputs: {} } as any);
  out("ms per answer", (performance.now() - t) / 11);
  globalThis.gc?.(); const a = process.memoryUsage(); out("11 answers of 2.7 MB: heap +MB", (a.heapUsed - b.heapUsed) / 1e6, own.get("x") ?? "");
});
