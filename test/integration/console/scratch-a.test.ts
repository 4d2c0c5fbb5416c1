import { connect } from "node:net";
import { readdirSync } from "node:fs";
import { request as send } from "node:http";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { ConsoleClient, ask } from "../../support/console/console-client.ts";
import { type Rig, startRig } from "../../support/workers/rig.ts";

const token = "the token of this test";
const printing = `
import sys, time
def floods(ctx):
    end = time.monotonic() + 6
    while time.monotonic() < end:
        sys.stdout.buffer.write(b"\\0" * 65536)
        sys.stdout.buffer.flush()
    return 1
def arrays(ctx):
    return [[] for _ in range(900000)]
def quick(ctx):
    return 1
`;
let rig: Rig; let port: number; let client: ConsoleClient;
beforeAll(async () => {
  [port] = (await freePorts(1)) as [number];
  rig = await startRig({
    tools: { floods: { module: "p", function: "floods" }, arrays: { module: "p", function: "arrays" }, quick: { module: "p", function: "quick" } },
    files: { "p.py": printing },
    environment: { CONSOLE_PORT: String(port), CONSOLE_TOKEN: token, ARTIFACT_MAX_MB: "1", TOOL_LOGS: "caller" },
  });
  client = await ConsoleClient.open(port, token);
}, 60000);
afterAll(() => rig[Symbol.asyncDispose]());
const out = (...a: unknown[]) => process.stderr.write("REVIEW " + a.map(x=>typeof x==="string"?x:JSON.stringify(x)).join(" ") + "\n");

async function lag(ms: number): Promise<number> {
  let max = 0, last = performance.now(); const end = last + ms;
  while (performance.now() < end) { await new Promise(r => setTimeout(r, 2)); const n = performance.now(); max = Math.max(max, n - last); last = n; }
  return max;
}
async function raw(text: string): Promise<string> {
  const s = connect(port, "127.0.0.1"); s.write(text); let got = ""; s.on("data", d => got += d); s.on("error", () => undefined);
  await Promise.race([once(s, "close"), new Promise(r => setTimeout(r, 1500))]); s.destroy();
  return got.split("\r\n")[0] + " | " + got.slice(-120).replace(/\s+/g, " ");
}

test("raw", async () => {
  const H = `Host: 127.0.0.1:${port}\r\n`;
  const cookie = `Cookie: ${client.headers["cookie"]}\r\nOrigin: http://127.0.0.1:${port}\r\n`;
  for (const [n, t] of Object.entries({
    abs: `GET http://evil/api/events HTTP/1.1\r\n${H}${cookie}\r\n`,
    nohost: `GET / HTTP/1.0\r\n\r\n`,
    options: `OPTIONS * HTTP/1.1\r\n${H}\r\n`,
    head: `HEAD /api/events HTTP/1.1\r\n${H}${cookie}\r\n`,
    connect: `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${H}\r\n`,
    upgrade: `GET / HTTP/1.1\r\n${H}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    duphost: `GET / HTTP/1.1\r\n${H}Host: evil\r\n\r\n`,
    v6: `GET / HTTP/1.1\r\nHost: [::1]:${port}\r\n\r\n`,
    rebind: `GET / HTTP/1.1\r\nHost: evil:${port}\r\n\r\n`,
    weird: `GET / HTTP/1.1\r\nHost: 127.0.0.1:99999\r\n\r\n`,
    expect: `POST /api/session HTTP/1.1\r\n${H}Expect: foo\r\nContent-Length: 3\r\n\r\nabc`,
    extra: `GET /api/calls/x/artifacts/0/more/and HTTP/1.1\r\n${H}${cookie}\r\n`,
    art: `GET /api/calls/x/artifacts/__proto__ HTTP/1.1\r\n${H}${cookie}\r\n`,
    proto: `GET /api/calls/__proto__ HTTP/1.1\r\n${H}${cookie}\r\n`,
    put: `PUT /api/inputs/..%2f..%2fx HTTP/1.1\r\n${H}${cookie}Content-Length: 1\r\n\r\nx`,
    nul: `PUT /api/inputs/a%00b HTTP/1.1\r\n${H}${cookie}Content-Length: 1\r\n\r\nx`,
  })) out(n, await raw(t));
}, 60000);

async function chunkedPut(path: string, method: string, type: string, bytes: number): Promise<string> {
  const r = send({ host: "127.0.0.1", port, method, path, headers: { ...client.headers, "content-type": type, "transfer-encoding": "chunked" }, agent: false });
  const done = new Promise<string>(res => { r.on("response", x => { x.resume(); res("status " + x.statusCode); }); r.on("error", e => res("error " + e.message)); });
  for (let i = 0; i < bytes / 65536; i++) { if (!r.write(Buffer.alloc(65536, 32))) await Promise.race([once(r, "drain"), done]); }
  r.end();
  return await done;
}
test("too large", async () => {
  out("chunked PUT of 3 MB over 1 MB:", await chunkedPut("/api/inputs/a.txt", "PUT", "text/plain", 3e6));
  out("JSON 12 MiB:", await chunkedPut("/api/calls", "POST", "application/json", 12e6));
  out("JSON 12 MiB session:", await chunkedPut("/api/session", "POST", "application/json", 12e6));
}, 60000);

test("preauth", async () => {
  const body = Buffer.from('{"token":[' + "[],".repeat(3_400_000) + "1]}");
  out("body MB", body.byteLength / 1e6);
  const before = process.memoryUsage();
  const sockets = Array.from({ length: 100 }, () => { const s = connect(port, "127.0.0.1"); s.on("error", () => undefined);
    s.write(`POST /api/session HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nOrigin: http://127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.byteLength}\r\n\r\n`);
    s.write(body.subarray(0, -1)); return s; });
  await new Promise(r => setTimeout(r, 8000));
  const after = process.memoryUsage();
  out("preauth rss +MB", (after.rss - before.rss) / 1e6, "external", (after.external - before.external) / 1e6, "arrayBuffers", (after.arrayBuffers - before.arrayBuffers) / 1e6);
  for (const s of sockets.slice(1)) s.destroy();
  const l = lag(4000); const answer = new Promise<string>(r => sockets[0]!.once("data", d => r(String(d).slice(0, 40))));
  sockets[0]!.write(body.subarray(-1));
  out("answer", await answer, "max loop lag ms of one login body", await l);
}, 60000);

test("logout keeps stream", async () => {
  const other = await ConsoleClient.open(port, token);
  const c = new AbortController(); let n = 0;
  const reading = (async () => { for await (const _e of other.events(c.signal)) n++; })().catch(() => undefined);
  await new Promise(r => setTimeout(r, 1000));
  out("logout", (await other.ask({ method: "DELETE", path: "/api/session" })).status);
  const at = n; await new Promise(r => setTimeout(r, 5000));
  out("events after logout", n - at); c.abort(); await reading;
}, 60000);

test("memory of answers", async () => {
  (globalThis as any).gc?.();
  const b = process.memoryUsage();
  for (let i = 0; i < 8; i++) {
    const l = lag(100);
    const id = await client.call({ tool: "arrays" });
    for (;;) { const d = await new Promise(r => setTimeout(r, 300)).then(() => ask(port, { path: `/api/calls/${id}`, headers: client.headers })); const j = JSON.parse(d.body.toString()); if (j.call.outcome) { if (i===0) out("arrays", j.call.outcome, "detail bytes", d.body.byteLength); break; } }
    await l;
  }
  (globalThis as any).gc?.();
  const a = process.memoryUsage(); out("8 answers heap +MB", (a.heapUsed - b.heapUsed) / 1e6, "gc", !!(globalThis as any).gc);
}, 90000);

test("flood", async () => {
  out("idle lag", await lag(1000));
  let bytes = 0, ends = 0; let stop = false;
  const reader = async () => { while (!stop) { await new Promise<void>(res => { const r = send({ host: "127.0.0.1", port, path: "/api/events", headers: client.headers, agent: false }, x => { x.on("data", d => bytes += d.length); x.on("close", () => { ends++; res(); }); x.on("error", () => undefined); }); r.on("error", () => res()); r.end(); }); await new Promise(r => setTimeout(r, 300)); } };
  const noPage = client.call({ tool: "floods" }); await noPage;
  out("lag w/o page", await lag(7500));
  void reader();
  await client.call({ tool: "floods" });
  out("lag with page", await lag(7500), "MB to page", bytes / 1e6, "stream ends", ends);
  const s = connect(port, "127.0.0.1"); s.on("error", () => undefined); s.write(`GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${client.headers["cookie"]}\r\n\r\n`); s.pause();
  stop = true;
}, 90000);
