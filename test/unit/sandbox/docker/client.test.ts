/**
 * Requests to an engine, which is a small server on a unix socket here.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingMessage, type RequestListener, createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  EngineClient,
  EngineError,
  maxAnswerBytes,
} from "../../../../worker/sandbox/docker/engine/client.ts";
import { Engine } from "../../../../worker/sandbox/docker/engine/containers.ts";
import { SandboxError } from "../../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../../worker/support/clock.ts";

const never = new AbortController().signal;
const ping = { method: "GET", path: "/info" } as const;

async function serve(listener: RequestListener) {
  const directory = await mkdtemp(join(tmpdir(), "engine-"));
  const path = join(directory, "socket");
  const server = createServer(listener).listen(path);
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  });
  return { client: new EngineClient(path, systemClock), server, path };
}

describe("a request to an engine", () => {
  test("has the version, its body and the answer", async () => {
    const seen: unknown[] = [];
    const { client } = await serve((request, response) => {
      void text(request).then((body) => {
        seen.push([request.method, request.url, request.headers["content-type"], body]);
        response.end('{"Id":"one"}');
      });
    });
    const body = { Image: "é" };
    const request = { method: "POST", path: "/containers/create", body } as const;
    expect(await client.ask(request, never)).toEqual({ Id: "one" });
    expect(await client.ask({ ...request, body: Buffer.from("tar") }, never)).toEqual({
      Id: "one",
    });
    expect(seen).toEqual([
      ["POST", "/v1.41/containers/create", "application/json", '{"Image":"é"}'],
      ["POST", "/v1.41/containers/create", "application/x-tar", "tar"],
    ]);
  });

  test("that is refused has the engine's status and message", async () => {
    const { client } = await serve((_request, response) => {
      response.writeHead(500).end('{"message":"no such device"}');
    });
    const refused = await client.ask(ping, never).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(EngineError);
    expect(refused).toMatchObject({ status: 500 });
    expect(String(refused)).toContain("no such device");
  });

  test("to no engine names the setting", async () => {
    const client = new EngineClient("/no/such/socket", systemClock);
    const failure = { constructor: SandboxError, setting: "dockerSocket" };
    await expect(client.ask(ping, never)).rejects.toMatchObject(failure);
    await expect(client.hijack(ping, never)).rejects.toMatchObject(failure);
  });

  test("whose answer is too long, or breaks off, is refused", async () => {
    let isLong = true;
    const { client } = await serve((_request, response) => {
      if (isLong) return void response.end(Buffer.alloc(maxAnswerBytes + 1, "x"));
      response.writeHead(200, { "Content-Length": 10 });
      response.write("half", () => void response.destroy());
    });
    await expect(client.ask(ping, never)).rejects.toThrow("more than");
    isLong = false;
    await expect(client.ask(ping, never)).rejects.toBeInstanceOf(SandboxError);
  });

  test("that is not answered ends by its time, or by its signal", async () => {
    const requests: IncomingMessage[] = [];
    const { client } = await serve((request) => void requests.push(request));
    await expect(client.ask(ping, never, 20)).rejects.toMatchObject({
      constructor: SandboxError,
      cause: { message: "not done within 20 ms" },
    });
    for (const ask of ["ask", "askUnbounded", "hijack"] as const) {
      const [given, reason] = [new AbortController(), new Error("given up")];
      const asked = client[ask](ping, given.signal);
      setImmediate(() => given.abort(reason));
      await expect(asked).rejects.toBe(reason);
    }
    await expect(client.ask(ping, AbortSignal.abort(new Error("before")))).rejects.toThrow(
      "before",
    );
    for (const { socket } of requests) if (!socket.closed) await once(socket, "close");
  });
});

describe("a connection that an engine hands over", () => {
  test("carries bytes in both directions, and outlives the signal of its request", async () => {
    const { client, server } = await serve(() => undefined);
    server.on("upgrade", (_request, socket) => {
      socket.write("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly ");
      socket.on("data", (chunk) => socket.end(`heard ${String(chunk)}`));
    });
    const given = new AbortController();
    const connection = await client.hijack({ method: "POST", path: "/attach" }, given.signal);
    given.abort();
    connection.write("hello");
    expect(await text(connection)).toBe("early heard hello");
  });

  test("that is refused is an error with the engine's message", async () => {
    const { client } = await serve((_request, response) => {
      response.writeHead(404).end('{"message":"No such container"}');
    });
    const refused = client.hijack({ method: "POST", path: "/attach" }, never);
    await expect(refused).rejects.toMatchObject({ status: 404 });
  });
});

describe("an engine", () => {
  test("that has removed a container is content, and one with another failure is not", async () => {
    let status = 404;
    const { client } = await serve((_request, response) => void response.writeHead(status).end());
    const engine = new Engine(client);
    await engine.remove("x", never);
    expect(await engine.imageId("x", never)).toBeUndefined();
    status = 409;
    await engine.kill("x", "SIGKILL", never);
    status = 500;
    await expect(engine.remove("x", never)).rejects.toBeInstanceOf(EngineError);
    await expect(engine.imageId("x", never)).rejects.toBeInstanceOf(EngineError);
  });

  test("whose answer has another form is refused", async () => {
    const { client } = await serve((_request, response) => void response.end('{"Id":1}'));
    const refused = new Engine(client).create({}, never);
    await expect(refused).rejects.toBeInstanceOf(SandboxError);
  });
});
