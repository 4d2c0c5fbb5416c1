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
    await using server = await startHealthServer(anyPort, () => ["broker"]);
    expect(await get(server, "/livez")).toEqual({
      status: 200,
      type: "application/json",
      body: { ok: true },
    });
  });

  test("says on /readyz what is missing, as it is at that moment", async () => {
    let missing = ["broker", "manifest"];
    await using server = await startHealthServer(anyPort, () => missing);
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

  test("does not mind what a prober adds to the path", async () => {
    await using server = await startHealthServer(anyPort, () => []);
    expect(await get(server, "/readyz?verbose=1")).toMatchObject({ status: 200 });
  });

  test.each(["/", "/livez/", "/readyz/x", "/metrics", "//livez"])(
    "has nothing else to say: %s",
    async (path) => {
      await using server = await startHealthServer(anyPort, () => []);
      expect(await get(server, path)).toMatchObject({ status: 404, body: { ok: false } });
    },
  );

  test("answers a request that is no HTTP, and lives on", async () => {
    await using server = await startHealthServer(anyPort, () => []);
    const socket = connect(server.port, "127.0.0.1");
    socket.end("nonsense\r\n\r\n");
    expect(await text(socket)).toContain("400 Bad Request");
    expect(await get(server, "/livez")).toMatchObject({ status: 200 });
  });

  test("does not start on a port that somebody has", async () => {
    await using first = await startHealthServer(anyPort, () => []);
    await expect(startHealthServer(first.port, () => [])).rejects.toThrow(
      expect.objectContaining({ code: "EADDRINUSE" }),
    );
    expect(await get(first, "/livez")).toMatchObject({ status: 200 });
  });

  test("closes its port with itself, also when somebody is connected and says nothing", async () => {
    const server = await startHealthServer(anyPort, () => []);
    const idle = connect(server.port, "127.0.0.1");
    await once(idle, "connect");
    const closed = once(idle, "close");
    await server[Symbol.asyncDispose]();
    await closed;
    await using again = await startHealthServer(server.port, () => []);
    expect(again.port).toBe(server.port);
  });
});
