/**
 * The HTTP proxy of sandboxes: what it sends on, and what it refuses.
 */
import { once } from "node:events";
import { type RequestListener, createServer as createHttpServer } from "node:http";
import { type Socket, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { maxHeaderBytes } from "../../../worker/egress/http-forward.ts";
import { headersTimeoutMs } from "../../../worker/egress/http-server.ts";
import { closed, listen, startProxy } from "./proxy-server.ts";

/** A server that keeps what it got, byte by byte, and answers with a text. */
async function rawServer(answer: string) {
  const received: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const index = received.push("") - 1;
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      received[index] += chunk.toString("latin1");
      if (/\r\n\r\n$/.test(received[index]!)) socket.write(answer, "latin1");
    });
  });
  const port = await listen(server);
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  return { port, received, sockets };
}

async function httpServer(listener: RequestListener): Promise<number> {
  const server = createHttpServer(listener);
  onTestFinished(() => server.closeAllConnections());
  return listen(server);
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
const entry = (port: number, host = "a.example.com") => ({ host, ports: [port], private: true });

/** A request for a.example.com. */
const request = (port: number, rest = "", line = "GET", path = "/") =>
  `${line} http://a.example.com:${port}${path} HTTP/1.1\r\nHost: a.example.com:${port}\r\n${rest}\r\n`;

async function nextText(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString();
}

const statusOf = (answer: string): string => answer.split(" ")[1] ?? "nothing";
const close = "Connection: close\r\n";

describe("a request with an absolute URI", { tags: "promise-S38" }, () => {
  test("is written anew, without headers of the connection", async () => {
    const { port, received } = await rawServer(
      "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nX-Kept: 1\r\nX-Named: 2\r\n" +
        "Set-Cookie: a\r\nSet-Cookie: b\r\nConnection: close, X-Named\r\n\r\nhi",
    );
    const proxy = await startProxy([entry(port)]);
    const headers = [
      ...["Connection: close, X-Secret", "X-Secret: 1", "Keep-Alive: 5", "TE: trailers"],
      ...["Upgrade: websocket", "Proxy-Authorization: Basic eA==", "Proxy-Connection: close"],
      "X-Kept: 1",
    ];
    const answer = await proxy.exchange(
      request(port, `${headers.join("\r\n")}\r\n`, "GET", "/p?q=1"),
    );
    expect(received).toEqual([
      `GET /p?q=1 HTTP/1.1\r\nHost: a.example.com:${port}\r\nX-Kept: 1\r\nConnection: close\r\n\r\n`,
    ]);
    expect(answer.split("\r\n")).toEqual([
      ...["HTTP/1.1 200 Fine", "Content-Length: 2", "X-Kept: 1", "Set-Cookie: a", "Set-Cookie: b"],
      ...["Connection: close", "", "hi"],
    ]);
    expect(proxy.record).toMatchObject({ connections: 1, refused: 0 });
    expect(proxy.record.sentBytes).toBe(received[0]!.length);
  });

  test("is decided anew on a connection that is kept", async () => {
    const port = await httpServer((_request, response) => response.end("hello"));
    const proxy = await startProxy([entry(port), entry(port, "b.example.com")]);
    const socket = await proxy.connect();
    const answers: string[] = [];
    for (const host of ["a.example.com", "b.example.com", "c.example.com"]) {
      socket.write(`GET http://${host}:${port}/ HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
      let text = "";
      while (!/(?:hello|\)\n)/.test(text)) text += await nextText(socket);
      answers.push(`${statusOf(text)} ${text.split("\r\n\r\n")[1]?.trim()}`.split(": ")[0]!);
    }
    expect(answers.map((answer) => answer.slice(0, 3))).toEqual(["200", "200", "403"]);
    expect(proxy.record).toMatchObject({
      connections: 3,
      refusals: [{ host: "c.example.com", port, reason: "no-rule" }],
    });
  });

  test.each([
    ["another host", (port: number) => `GET http://b.example.com:${port}/`, "no-rule"],
    ["a literal address", (port: number) => `GET http://127.0.0.1:${port}/`, "no-rule"],
    ["a third port", () => "GET http://a.example.com:1/", "no-rule"],
  ])("for %s is a 403 that names it", async (_what, lineOf, reason) => {
    const { port, received } = await rawServer(ok);
    const proxy = await startProxy([entry(port)]);
    const line = lineOf(port);
    const [, authority] = /\/\/([^/]*)/.exec(line)!;
    const answer = await proxy.exchange(`${line} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    expect(statusOf(answer)).toBe("403");
    expect(answer).toContain(
      `${authority}: the network of this tool does not allow it (${reason})`,
    );
    expect(received).toEqual([]);
  });

  test("sends bodies both ways, of either framing, and drops trailers", async () => {
    const port = await httpServer((incoming, response) => {
      response.writeHead(200, { "Transfer-Encoding": "chunked", Trailer: "X-After" });
      response.addTrailers({ "X-After": "1" });
      const { "content-length": length, "transfer-encoding": encoding, trailer } = incoming.headers;
      response.write(`${length} ${encoding} ${trailer} `);
      incoming.pipe(response);
    });
    const proxy = await startProxy([entry(port)]);
    const fixed = await proxy.exchange(
      request(port, `${close}Content-Length: 3\r\n`, "PUT") + "abc",
    );
    expect(fixed).toContain("abc\r\n0\r\n\r\n");
    expect(fixed).toContain("3 undefined undefined");
    const chunked = await proxy.exchange(
      request(port, `${close}Transfer-Encoding: chunked\r\nTrailer: X-T\r\n`, "POST") +
        "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
    );
    expect(chunked).toContain("undefined chunked undefined");
    expect(chunked).toContain("abc\r\n0\r\n\r\n");
    expect(fixed + chunked).not.toContain("X-After");
  });

  test.each([
    ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"],
    ["GET", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["GET", 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'],
    ["GET", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"],
  ])("of %s ends without a body where the answer has none: %j", async (method, answer) => {
    const { port } = await rawServer(answer);
    const proxy = await startProxy([entry(port)]);
    const received = await proxy.exchange(request(port, close, method));
    const [head = "", body] = received.split("\r\n\r\n");
    expect(body).toBe("");
    expect(answer).toContain(head.split("\r\n")[0]);
    if (method === "HEAD") expect(head).toContain("Content-Length: 5");
  });

  test.each([
    [
      "an upgrade that was not asked for",
      "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    ],
    [
      "two lengths",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["no HTTP", "220 welcome\r\n\r\n"],
    ["endless headers", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(maxHeaderBytes)}\r\n\r\n`],
  ])("is a 502 where the host answers with %s", async (_what, answer) => {
    const { port } = await rawServer(answer);
    const proxy = await startProxy([entry(port)]);
    const received = await proxy.exchange(request(port));
    expect(statusOf(received)).toBe("502");
    expect(received).toContain(`a.example.com:${port}: the host cannot be used (unreachable)`);
  });

  test("is a 502 for a host that cannot be reached", async () => {
    const gone = createServer();
    const port = await listen(gone);
    gone.close();
    await once(gone, "close");
    const proxy = await startProxy([entry(port)]);
    expect(statusOf(await proxy.exchange(request(port)))).toBe("502");
  });

  test("is cut short where the host cuts its answer short", async () => {
    const { port, sockets } = await rawServer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    const proxy = await startProxy([entry(port)]);
    const socket = await proxy.connect();
    socket.write(request(port));
    let text = "";
    while (!text.endsWith("half")) text += await nextText(socket);
    const ended = closed(socket);
    sockets[0]!.destroy();
    await ended;
    expect(text).not.toContain("502");
  });

  test("ends at the host when the program gives up", async () => {
    const { port, sockets } = await rawServer("");
    const proxy = await startProxy([entry(port)]);
    const socket = await proxy.connect();
    socket.write(request(port));
    await expect.poll(() => sockets.length).toBe(1);
    const ended = once(sockets[0]!, "close");
    socket.destroy();
    await ended;
  });
});

describe("requests that two readers could read in different ways", { tags: "promise-S38" }, () => {
  const host = (port: number) => `Host: a.example.com:${port}\r\n`;
  test.each<[what: string, text: (port: number) => string]>([
    [
      "two framings",
      (port) => request(port, "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "POST"),
    ],
    ["two lengths", (port) => request(port, "Content-Length: 3\r\nContent-Length: 4\r\n", "POST")],
    ["a list of lengths", (port) => request(port, "Content-Length: 3, 3\r\n", "POST")],
    ["a signed length", (port) => request(port, "Content-Length: +3\r\n", "POST")],
    [
      "an encoding that is not the last",
      (port) => request(port, "Transfer-Encoding: chunked, gzip\r\n", "POST"),
    ],
    ["another encoding", (port) => request(port, "Transfer-Encoding: gzip, chunked\r\n", "POST")],
    ["an odd encoding", (port) => request(port, "Transfer-Encoding: xchunked\r\n", "POST")],
    [
      "two encodings",
      (port) =>
        request(port, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "POST"),
    ],
    ["a blank before the colon", (port) => request(port, "Content-Length : 3\r\n", "POST")],
    ["a folded header", (port) => request(port, "X: 1\r\n Content-Length: 3\r\n", "POST")],
    ["a bare line feed", (port) => request(port).replaceAll("\r\n", "\n")],
    ["a bare carriage return", (port) => request(port, "X: a\rContent-Length: 3\r\n", "POST")],
    ["a null byte", (port) => request(port, "X: a\0b\r\n")],
    ["two hosts", (port) => request(port, host(port))],
    ["no host", (port) => `GET http://a.example.com:${port}/ HTTP/1.1\r\n\r\n`],
    ["another host", (port) => request(port).replace("Host: a.", "Host: b.")],
    ["another port", (port) => request(port).replace(/Host: (.*):\d+/, "Host: $1:1")],
    ["a user name", (port) => request(port).replace("http://", "http://b@")],
    ["a path alone", (port) => `GET / HTTP/1.1\r\n${host(port)}\r\n`],
    ["https", (port) => request(port).replace("http:", "https:")],
    ["another version", (port) => request(port).replace("HTTP/1.1", "HTTP/2.0")],
    [
      "a tunnel with a body",
      (port) =>
        `CONNECT a.example.com:${port} HTTP/1.1\r\n${host(port)}Content-Length: 3\r\n\r\nabc`,
    ],
    [
      "a tunnel elsewhere",
      (port) => `CONNECT a.example.com:${port} HTTP/1.1\r\nHost: b.example.com:${port}\r\n\r\n`,
    ],
    ["TLS to the proxy", () => "\x16\x03\x01\x00\x05hello\r\n\r\n"],
  ])("are a 400: %s", async (_what, text) => {
    const { port, received } = await rawServer(ok);
    const proxy = await startProxy([entry(port)]);
    const answer = await proxy.exchange(text(port));
    expect(statusOf(answer)).toBe("400");
    expect(received).toEqual([]);
    expect(proxy.record.connections).toBe(0);
  });

  test("are not a second request in the body of the first", async () => {
    const { port, received } = await rawServer(ok);
    const proxy = await startProxy([entry(port)]);
    const inner = request(port, "", "GET", "/inner");
    await proxy.exchange(
      request(port, `Content-Length: ${inner.length}\r\n${close}`, "POST") + inner,
    );
    expect(received).toHaveLength(1);
    expect(received[0]).toMatch(/^POST \/ HTTP\/1.1\r\n/);
  });

  test("are not read before the answer to the one before", async () => {
    const { port, received } = await rawServer("");
    const proxy = await startProxy([entry(port)]);
    expect(await proxy.exchange(request(port) + request(port, "", "GET", "/second"))).toBe("");
    expect(received.join("")).not.toContain("second");
  });
});

describe("CONNECT", { tags: "promise-S38" }, () => {
  const open = (host: string, port: number) =>
    `CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`;

  test("opens a tunnel both ways, each half of which ends by itself", async () => {
    const port = await listen(
      createServer({ allowHalfOpen: true }, (socket) =>
        socket.on("error", () => undefined).pipe(socket),
      ),
    );
    const proxy = await startProxy([entry(port)]);
    const socket = await proxy.connect();
    // What follows early is not lost.
    socket.end(`${open("a.example.com", port)}hello`);
    const text = Buffer.concat((await socket.toArray()) as Buffer[]).toString();
    expect(text).toBe("HTTP/1.1 200 Connection Established\r\n\r\nhello");
    expect(proxy.record).toMatchObject({ connections: 1, sentBytes: 5, receivedBytes: 5 });
  });

  test("to what no rule allows is a 403", async () => {
    const { port, received } = await rawServer(ok);
    const proxy = await startProxy([entry(port)]);
    for (const [host, to] of [
      ["b.example.com", port],
      ["a.example.com", port + 1],
      ["127.0.0.1", port],
    ] as const)
      expect(await proxy.exchange(open(host, to))).toMatch(/^HTTP\/1.1 403 [^]*\(no-rule\)\n$/);
    expect(received).toEqual([]);
  });

  test("to an address that is not public is a 403", async () => {
    const { port } = await rawServer(ok);
    const proxy = await startProxy([{ host: "a.example.com", ports: [port] }]);
    expect(await proxy.exchange(open("a.example.com", port))).toMatch(/ 403 [^]*\(not-public\)\n$/);
  });

  test("has a bound of connections to the proxy that ask for nothing", async () => {
    const proxy = await startProxy([entry(1)], 2);
    for (let count = 0; count < 2; count++) await proxy.connect();
    expect(await proxy.exchange("")).toMatch(/^HTTP\/1.1 503 [^]*\(too-many-connections\)\n$/);
    expect(proxy.record).toMatchObject({
      connections: 0,
      refusals: [{ host: "127.0.0.1", port: 3128, reason: "too-many-connections" }],
    });
  });

  test("counts as one of the connections at once, as those to the proxy do", async () => {
    const { port } = await rawServer(ok);
    const proxy = await startProxy([entry(port)], 1);
    const socket = await proxy.connect();
    socket.write(open("a.example.com", port));
    await once(socket, "data");
    const answer = await proxy.exchange(open("a.example.com", port));
    expect(answer).toMatch(/^HTTP\/1.1 503 [^]*\(too-many-connections\)\n$/);
    socket.destroy();
    await expect
      .poll(async () => {
        const next = await proxy.connect();
        next.write(open("a.example.com", port));
        const [chunk] = (await once(next, "data")) as [Buffer];
        next.destroy();
        return statusOf(chunk.toString());
      })
      .toBe("200");
  });
});

describe("a program that the proxy waits for", { tags: "promise-S38" }, () => {
  test("with endless headers is a 431", async () => {
    const proxy = await startProxy([entry(1)]);
    const answer = await proxy.exchange(request(1, `X: ${"x".repeat(maxHeaderBytes)}\r\n`));
    expect(statusOf(answer)).toBe("431");
  });

  test("with slow headers is a 408", { tags: "full", timeout: 4 * headersTimeoutMs }, async () => {
    const proxy = await startProxy([entry(1)]);
    expect(statusOf(await proxy.exchange("GET http://a.example.com/ HTTP/1.1\r\n"))).toBe("408");
  });

  test("is let go with the sandbox", async () => {
    const proxy = await startProxy([entry(1)]);
    const socket = await proxy.connect();
    socket.write("GET ");
    const ended = closed(socket);
    // The proxy has it.
    await new Promise(setImmediate);
    proxy.end();
    socket.resume();
    await ended;
  });
});
