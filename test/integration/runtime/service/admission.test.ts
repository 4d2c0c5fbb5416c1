/**
 * Who may execute over a connection, and where a service listens.
 */
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { once } from "node:events";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { unsafeHost, defineBackend } from "../../../../worker/runtime/api/backend.ts";
import { RuntimeError } from "../../../../worker/runtime/api/errors.ts";
import { maxHandshakes } from "../../../../worker/runtime/service/limits.ts";
import { subprotocol } from "../../../../worker/runtime/service/messages.ts";
import { openRemote } from "../../../../worker/runtime/service/remote.ts";
import type { ServeOptions } from "../../../../worker/runtime/service/options.ts";
import { serveRuntime } from "../../../../worker/runtime/service/server.ts";
import { Authority } from "../../../support/brokers/rabbitmq-certificates.ts";
import { gatewayOf } from "../../../support/gateway/raw-program.ts";
import { patience } from "../../../support/patience.ts";
import {
  codeOf,
  scriptedBackend,
  scriptedDefinition,
} from "../../../support/runtime/scripted-backend.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const token = "a token of at least thirty-two characters";

async function serve(options: Partial<ServeOptions> = {}) {
  const service = await serveRuntime({ backend: scriptedBackend(), port: 0, ...options });
  onTestFinished(() => service[Symbol.asyncDispose]());
  return service;
}

async function failureOf(operation: Promise<unknown>): Promise<RuntimeError> {
  const error: unknown = await operation.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RuntimeError);
  return error as RuntimeError;
}

describe("a token", { tags: "promise-L1" }, () => {
  test("is asked for, and is in no error", async () => {
    const { port } = await serve({ token });
    const url = `ws://127.0.0.1:${port}`;
    await using backend = await openRemote({ url, token });
    expect(backend.kind).toBe("remote");
    for (const given of [undefined, "", token.slice(1), `${token}x`, token.toUpperCase()]) {
      const failure = await failureOf(openRemote({ url, token: given }));
      expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", op: "open", retryable: false });
      expect(failure.message).toContain("does not accept the token");
      expect(failure.message).not.toContain(token.slice(1));
    }
  });

  test("is asked for before anything else is read", async () => {
    const onStart = vi.fn();
    const { port } = await serve({ token, backend: scriptedBackend(onStart) });
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, subprotocol);
    const [, response] = (await once(socket, "unexpected-response")) as [
      unknown,
      { statusCode: number },
    ];
    expect(response.statusCode).toBe(401);
    socket.on("error", () => undefined);
    socket.terminate();
    expect(onStart).not.toHaveBeenCalled();
  });
});

describe("another machine", { tags: "promise-L1" }, () => {
  const tls = { cert: "", key: "" };
  test.each([
    ["0.0.0.0", {}, "a token and TLS"],
    ["::", { token }, "TLS"],
    ["192.0.2.1", { tls }, "a token"],
    ["runtime.example", { token }, "TLS"],
  ])("is not listened for on %s with %o", async (host, options, missing) => {
    const failure = await failureOf(serve({ host, ...options }));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: false });
    expect(failure.message).toContain(`needs ${missing}`);
  });

  test.each([
    ["ws://192.0.2.1", undefined, "needs a token and TLS"],
    ["ws://192.0.2.1", token, "needs TLS"],
    ["wss://192.0.2.1", undefined, "needs a token"],
    ["ws://localhost.example", token, "needs TLS"],
    ["http://127.0.0.1", token, "begins with ws: or wss:"],
    [`ws://user:${token}@127.0.0.1`, token, "has no user"],
    ["nowhere", token, "is none"],
  ])("is not connected to by %s", async (url, given, problem) => {
    const failure = await failureOf(openRemote({ url, token: given }));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", op: "open", retryable: false });
    expect(failure.message).toContain(problem);
    expect(failure.message).not.toContain(token);
  });
});

describe("a page of a browser", { tags: "promise-L1" }, () => {
  test("executes nothing, though this machine needs no token", async () => {
    const { port } = await serve();
    const url = `ws://127.0.0.1:${port}`;
    const status = async (origin?: string): Promise<unknown> => {
      const socket = new WebSocket(url, subprotocol, origin === undefined ? {} : { origin });
      socket.on("error", () => undefined);
      const opened = once(socket, "open").then(() => 101);
      const refused = once(socket, "unexpected-response").then(
        ([, response]) => (response as { statusCode: number }).statusCode,
      );
      const answer = await Promise.race([opened, refused]);
      socket.terminate();
      return answer;
    };
    expect(await status()).toBe(101);
    expect(await status("https://page.example")).toBe(403);
    expect(await status("null")).toBe(403);
  });
});

describe("TLS", () => {
  let directory: string;
  let authority: Authority;
  const read = (path: string) => readFile(path, "utf8");
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "service-"));
    authority = await Authority.create(directory);
    return () => rm(directory, { recursive: true });
  });

  async function serveTls(names: string) {
    const { cert, key } = await authority.issue(names.replace(":", "-"), names);
    return serve({ token, tls: { cert: await read(cert), key: await read(key) } });
  }

  test("executes with a trusted certificate", async () => {
    const { port } = await serveTls("IP:127.0.0.1");
    const ca = await read(authority.cert);
    await using backend = await openRemote({ url: `wss://127.0.0.1:${port}`, token, ca });
    const request = { code: codeOf(["call", "echo", { a: 1 }]) };
    const gateway = gatewayOf({ id: "echo", run: (args) => args });
    expect((await backend.execute({ ...request, gateway })).value).toMatchObject({
      structured: { a: 1 },
    });
  });

  test(
    "trusts no other certificate, and none of another host",
    { tags: "promise-L1" },
    async () => {
      const own = await serveTls("IP:127.0.0.1");
      const url = `wss://127.0.0.1:${own.port}`;
      const untrusted = await failureOf(openRemote({ url, token }));
      expect(untrusted).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: false });
      expect(untrusted.message).toMatch(/SIGNATURE|ISSUER|CERT/);
      const other = await serveTls("DNS:runtime.example");
      const ca = await read(authority.cert);
      const misnamed = openRemote({ url: `wss://127.0.0.1:${other.port}`, token, ca });
      expect((await failureOf(misnamed)).message).toContain("ALTNAME");
    },
  );

  test("is not spoken by a plain service", async () => {
    const { port } = await serve({ token });
    const failure = await failureOf(openRemote({ url: `wss://127.0.0.1:${port}`, token }));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
  });
});

describe("a service", () => {
  test("answers no plain request", async () => {
    const { port } = await serve();
    const asked = request({ port, host: "127.0.0.1", path: "/" }).end();
    const [response] = (await once(asked, "response")) as [{ statusCode: number; resume(): void }];
    response.resume();
    expect(response.statusCode).toBe(426);
  });

  test("refuses another version", async () => {
    const { port } = await serve();
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, "secure-tool-runtime.v0");
    socket.on("error", () => undefined);
    const [, response] = (await once(socket, "unexpected-response")) as [
      unknown,
      { statusCode: number },
    ];
    expect(response.statusCode).toBe(400);
    socket.terminate();
  });

  test("without isolation is one without isolation over a connection", async () => {
    const backend = defineBackend({ ...scriptedDefinition(), kind: unsafeHost });
    const { port } = await serve({ backend });
    await using remote = await openRemote({ url: `ws://127.0.0.1:${port}` });
    expect(remote.kind).toBe(unsafeHost);
  });

  test("takes no more connections than it may, and more when some end", async () => {
    const { port } = await serve({ maxConnections: 2 });
    const url = `ws://127.0.0.1:${port}`;
    const open = async () => {
      const socket = new WebSocket(url, subprotocol);
      await once(socket, "open");
      return socket;
    };
    const sockets = [await open(), await open()];
    const failure = await failureOf(openRemote({ url }));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: true });
    expect(failure.message).toContain("is busy");
    sockets[0]!.terminate();
    await vi.waitFor(async () => void (await openRemote({ url })), patience);
    sockets[1]!.terminate();
  });

  test("cuts connections beyond those that may be without a token", async () => {
    const { port } = await serve({ token });
    const sockets = Array.from({ length: maxHandshakes + 6 }, () => connect(port, "127.0.0.1"));
    let cut = 0;
    for (const socket of sockets) socket.on("error", () => undefined).on("close", () => cut++);
    await vi.waitFor(() => expect(cut).toBe(6), patience);
    for (const socket of sockets) socket.destroy();
    await vi.waitFor(
      async () => void (await openRemote({ url: `ws://127.0.0.1:${port}`, token })),
      patience,
    );
  });
});
