/**
 * Requests on their way to a host, by real servers on both sides.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  Agent,
  type IncomingMessage,
  type RequestListener,
  createServer,
  request,
} from "node:http";
import { type AddressInfo, type Server, connect, createServer as createTcpServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { endToEndHeaders, forward } from "../../../worker/egress/http-forward.ts";
import { localConnection } from "../../../worker/egress/local-connection.ts";

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A forwarder in front of a host; what it answers to a request with this body. */
async function through(hostPort: number, body: string, method = "POST") {
  const agent = new Agent({ keepAlive: true, host: "127.0.0.1", port: hostPort });
  onTestFinished(() => agent.destroy());
  const failures: unknown[] = [];
  const chunks: Buffer[] = [];
  const port = await listen(
    createServer((incoming, response) => {
      const push = incoming.push.bind(incoming);
      incoming.push = (chunk: Buffer | null) => {
        if (chunk !== null) chunks.push(chunk);
        return push(chunk);
      };
      const headers = endToEndHeaders(incoming.rawHeaders);
      const target = incoming.url ?? "";
      const { signal } = new AbortController();
      forward({ incoming, response, target, headers, agent, signal }).catch((error: unknown) => {
        failures.push(error);
        response.writeHead(502).end();
      });
    }),
  );
  const sent = request({ port, host: "127.0.0.1", method, path: "/a?b", headers: { "X-A": "1" } });
  // A body that nobody reads may be cut off.
  sent.on("error", () => undefined);
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const text = await answer.toArray().then(
    (chunks) => Buffer.concat(chunks as Buffer[]).toString(),
    () => "broken off",
  );
  return { status: answer.statusCode, text, headers: answer.headers, failures, chunks };
}

test("headers of the connection do not go on, nor those that it names", () => {
  const raw = [
    ...["Host", "a", "X-A", "1", "x-a", "2", "Connection", "close, X-Hop", "x-hop", "3"],
    ...["Transfer-Encoding", "chunked", "Upgrade", "websocket", "TE", "trailers"],
    ...["Keep-Alive", "timeout=1", "Proxy-Authorization", "mine", "Expect", "100-continue"],
  ];
  expect(endToEndHeaders(raw)).toEqual([
    ["Host", "a"],
    ["X-A", "1"],
    ["x-a", "2"],
  ]);
});

test("a body goes on as it is, and the answer comes back", async () => {
  const body = randomBytes(500_000).toString("hex");
  const listener: RequestListener = (incoming, response) => {
    response.writeHead(201, { "X-Target": incoming.url });
    incoming.pipe(response);
  };
  const { chunks, ...answer } = await through(await listen(createServer(listener)), body);
  expect(answer).toMatchObject({ status: 201, failures: [] });
  expect(answer.text === body).toBe(true);
  expect(answer.headers).toMatchObject({ "x-target": "/a?b" });
  // Freed, though this test has each.
  expect(chunks.filter(({ byteLength }) => byteLength > 0)).toEqual([]);
  expect(chunks.length).toBeGreaterThan(1);
});

test("a host that answers before it has read all is heard", async () => {
  const listener: RequestListener = (_incoming, response) => void response.writeHead(413).end("no");
  const answer = await through(await listen(createServer(listener)), "x".repeat(8_000_000));
  expect(answer).toMatchObject({ status: 413, text: "no" });
});

test.each([
  ["ends without an answer", ""],
  ["does not speak HTTP", "220 welcome\r\n\r\n"],
  ["has endless headers", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(40_000)}\r\n\r\n`],
  ["changes the protocol", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
])("a host that %s is a failure", async (_what, text) => {
  const host = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(text));
  });
  const { status, failures } = await through(await listen(host), "", "GET");
  expect(status).toBe(502);
  expect(failures).toHaveLength(1);
});

test("a refusal reaches a client that still sends its body", async () => {
  const agent = new Agent();
  const refusal = new Error("no-rule");
  agent.createConnection = () => {
    const [near, far] = localConnection();
    far
      .on("error", () => undefined)
      .once("readable", () => setImmediate(() => far.destroy(refusal)));
    return near;
  };
  const failures: unknown[] = [];
  const port = await listen(
    createServer((incoming, response) => {
      const { signal } = new AbortController();
      const headers = [["Host", "a"]] as const;
      forward({ incoming, response, target: "/", headers, agent, signal }).catch(
        (error: unknown) => {
          failures.push(error);
          response.writeHead(403).end();
        },
      );
    }),
  );
  const sent = request({ port, host: "127.0.0.1", method: "POST" });
  onTestFinished(() => void sent.destroy());
  sent.write("x".repeat(8_000_000));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  expect([answer.statusCode, failures]).toEqual([403, [refusal]]);
});

test("an answer that breaks off breaks off for the client", async () => {
  const host = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"));
  });
  const answer = await through(await listen(host), "", "GET");
  expect(answer).toMatchObject({ status: 200, text: "broken off", failures: [] });
});

test.each(["Connection: content-length\r\n", ""])(
  "a body is never the next request, with the header %j",
  async (header) => {
    const seen: string[] = [];
    const host = await listen(
      createServer((incoming, response) => {
        void incoming.toArray().then((chunks: Buffer[]) => {
          seen.push(`${incoming.method} ${incoming.url} ${Buffer.concat(chunks).toString()}`);
          response.end("fine");
        });
      }),
    );
    const agent = new Agent({ keepAlive: true, host: "127.0.0.1", port: host });
    onTestFinished(() => agent.destroy());
    const port = await listen(
      createServer((incoming, response) => {
        const headers = endToEndHeaders(incoming.rawHeaders);
        const { signal } = new AbortController();
        void forward({ incoming, response, target: "/first", headers, agent, signal });
      }),
    );
    const body = "DELETE /second HTTP/1.1\r\nHost: a\r\n\r\n";
    const client = connect({ host: "127.0.0.1", port });
    onTestFinished(() => void client.destroy());
    const head = `GET /first HTTP/1.1\r\nHost: a\r\n${header}Content-Length: ${body.length}\r\n\r\n`;
    client.write(head + body);
    await once(client, "data");
    expect(seen).toEqual([`GET /first ${body}`]);
  },
);

test("what the worker put into a request is hidden in the answer's headers", async () => {
  const host = await listen(
    createServer((incoming, response) => {
      response.writeHead(301, "Moved secret", { Location: `${incoming.url}/?key=secret` }).end();
    }),
  );
  const agent = new Agent({ host: "127.0.0.1", port: host });
  onTestFinished(() => agent.destroy());
  const hide = (text: string): string => text.replaceAll("secret", "hidden");
  const port = await listen(
    createServer((incoming, response) => {
      const { signal } = new AbortController();
      const headers = [["Host", "a"]] as const;
      void forward({ incoming, response, target: "/a", headers, agent, signal, hide });
    }),
  );
  const sent = request({ port, host: "127.0.0.1" }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  expect(answer).toMatchObject({ statusMessage: "Moved hidden" });
  expect(answer.headers.location).toBe("/a/?key=hidden");
});
