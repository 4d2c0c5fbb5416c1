/**
 * The health routes.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { type HealthServer, startHealthServer } from "../../../worker/telemetry/health.ts";

/** A free port: the system's choice. */
const anyPort = 0;

/** Probes of a worker that lacks these things, and has not started unless said. */
function start(missing: () => readonly string[] = () => [], hasStarted = false, port = anyPort) {
  return startHealthServer({ port, host: undefined }, { missing, hasStarted: () => hasStarted });
}

async function get(server: HealthServer, path: string) {
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    body: await response.json(),
  };
}

describe("the health server", () => {
  test("says on /livez that the process answers, ready or not", async () => {
    await using server = await start(() => ["broker"]);
    expect(await get(server, "/livez")).toEqual({
      status: 200,
      type: "application/json",
      body: { ok: true },
    });
  });

  test("says on /readyz what is missing, as it is at that moment", async () => {
    let missing = ["broker", "manifest"];
    await using server = await start(() => missing);
    expect(await get(server, "/readyz")).toEqual({
      status: 503,
      type: "application/json",
      body: { ok: false, missing: ["broker", "manifest"] },
    });
    missing = [];
    expect(await get(server, "/readyz")).toMatchObject({ status: 200, body: { ok: true } });
    missing = ["draining"];
    expect(await get(server, "/readyz")).toMatchObject({ status: 503 });
  });

  test("tells on /readyz what else an operator should mend, ready or not", async () => {
    const missing: string[] = [];
    await using server = await startHealthServer(
      { port: anyPort, host: undefined },
      {
        missing: () => missing,
        warnings: () => ["group"],
        packages: () => ({ ready: 1, installing: 2, failed: 0 }),
        hasStarted: () => true,
      },
    );
    const packages = { ready: 1, installing: 2, failed: 0 };
    const body = { ok: true, warnings: ["group"], packages };
    expect(await get(server, "/readyz")).toMatchObject({ status: 200, body });
    missing.push("broker");
    expect(await get(server, "/readyz")).toMatchObject({
      status: 503,
      body: { ok: false, missing: ["broker"], warnings: ["group"], packages },
    });
  });

  test.each([
    ["/livez", "/healthz"],
    ["/livez", "/health"],
    ["/readyz", "/ready"],
  ])("answers on %s as on %s, whether it is ready or not", async (path, alias) => {
    let missing = ["broker"];
    await using server = await start(() => missing);
    expect(await get(server, alias)).toEqual(await get(server, path));
    missing = [];
    expect(await get(server, alias)).toEqual(await get(server, path));
    expect(await get(server, alias)).toMatchObject({ status: 200 });
  });

  test("says on /startup what keeps the worker from starting, and nothing any more once it had started", async () => {
    await using starting = await start(() => ["broker"]);
    expect(await get(starting, "/startup")).toMatchObject({
      status: 503,
      body: { ok: false, missing: ["broker"] },
    });
    await using cutOff = await start(() => ["broker"], true);
    expect(await get(cutOff, "/startup")).toMatchObject({ status: 200, body: { ok: true } });
    expect(await get(cutOff, "/readyz")).toMatchObject({ status: 503 });
  });

  test("listens on one address only where it is told to", async () => {
    const health = { missing: () => [], hasStarted: () => true };
    await using server = await startHealthServer({ port: anyPort, host: "127.0.0.2" }, health);
    const elsewhere = connect(server.port, "127.0.0.1");
    await expect(once(elsewhere, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    const response = await fetch(`http://127.0.0.2:${server.port}/livez`);
    expect(response.status).toBe(200);
  });

  test("does not mind what a prober adds to the path", async () => {
    await using server = await start();
    expect(await get(server, "/readyz?verbose=1")).toMatchObject({ status: 200 });
  });

  test.each(["/", "/livez/", "/readyz/x", "/metrics", "//livez", "/started"])(
    "has nothing else to say: %s",
    async (path) => {
      await using server = await start();
      expect(await get(server, path)).toMatchObject({ status: 404, body: { ok: false } });
    },
  );

  test("has a page of metrics where it is given one, and 500 in place of one that fails", async () => {
    let isWhole = true;
    const page = { contentType: "text/plain; version=0.0.4", text: "up 1\n" };
    const failure = () => Promise.reject(new Error("/host/path"));
    const metrics = () => (isWhole ? Promise.resolve(page) : failure());
    const health = { missing: () => [], hasStarted: () => true, metrics };
    await using server = await startHealthServer({ port: anyPort, host: undefined }, health);
    const response = await fetch(`http://127.0.0.1:${server.port}/metrics?x=1`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe(page.contentType);
    expect(await response.text()).toBe(page.text);
    isWhole = false;
    const [type, body] = ["application/json", { ok: false }];
    expect(await get(server, "/metrics")).toEqual({ status: 500, type, body });
    expect(await get(server, "/livez")).toMatchObject({ status: 200 });
  });

  test("answers a request that is no HTTP, and lives on", async () => {
    await using server = await start();
    const socket = connect(server.port, "127.0.0.1");
    socket.end("nonsense\r\n\r\n");
    expect(await text(socket)).toContain("400 Bad Request");
    expect(await get(server, "/livez")).toMatchObject({ status: 200 });
  });

  test("does not start on a port that somebody has", async () => {
    await using first = await start();
    await expect(start(undefined, false, first.port)).rejects.toThrow(
      expect.objectContaining({ code: "EADDRINUSE" }),
    );
    expect(await get(first, "/livez")).toMatchObject({ status: 200 });
  });

  test("closes its port with itself, also when somebody is connected and says nothing", async () => {
    const server = await start();
    const idle = connect(server.port, "127.0.0.1");
    await once(idle, "connect");
    const closed = once(idle, "close");
    await server[Symbol.asyncDispose]();
    await closed;
    await using again = await start(undefined, false, server.port);
    expect(again.port).toBe(server.port);
  });
});
