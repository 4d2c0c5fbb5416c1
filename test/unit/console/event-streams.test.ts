/**
 * Event streams over a real connection, of a worker that the test invents.
 */
import { once } from "node:events";
import { type IncomingMessage, createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import type { CallView, Sample, WorkerView } from "../../../worker/console/api.ts";
import type { CallListener, RecentCall } from "../../../worker/console/calls/recent-call.ts";
import { EventStreams } from "../../../worker/console/http/event-streams.ts";
import { HttpError } from "../../../worker/console/http/failure.ts";
import { patience } from "../../support/patience.ts";

/** A server whose every request is a stream, and what its worker does. */
async function start() {
  const listeners = new Set<CallListener>();
  const samplers = new Set<(sample: Sample) => void>();
  const subscribe = <Item>(set: Set<Item>, item: Item): Disposable => {
    set.add(item);
    return { [Symbol.dispose]: () => void set.delete(item) };
  };
  const worker = { isReady: true };
  const known = new Map<string, CallView>();
  const streams = new EventStreams({
    view: () => ({ ...worker }) as unknown as WorkerView,
    calls: {
      views: [],
      get: (id) => (known.has(id) ? ({ view: known.get(id) } as unknown as RecentCall) : undefined),
      onChange: (listener) => subscribe(listeners, listener),
    },
    samples: { all: [], onSample: (listener) => subscribe(samplers, listener) },
  });
  const refused: unknown[] = [];
  const closed = new Set<unknown>();
  const server = createServer((_, response) => {
    response.on("close", () => closed.add(response));
    try {
      streams.open(response);
    } catch (error) {
      refused.push(error);
      response.writeHead(429).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    streams[Symbol.dispose]();
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  });
  const { port } = server.address() as AddressInfo;
  const open = async (): Promise<IncomingMessage> => {
    const request = get({ host: "127.0.0.1", port, agent: false });
    const [response] = (await once(request, "response")) as [IncomingMessage];
    return response.on("error", () => undefined);
  };
  const [listener] = listeners;
  const [sample] = samplers;
  if (listener === undefined || sample === undefined) throw new Error("nothing is followed");
  const change = (call: CallView): void => {
    known.set(call.id, call);
    listener.call(call.id);
  };
  return { worker, known, change, streams, listener, listeners, sample, refused, closed, open };
}

/** Names of the events so far, and their data. */
function read(response: IncomingMessage): [name: string, data: unknown][] {
  const events: [string, unknown][] = [];
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    const parts = (text + chunk).split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      const [, name = "", data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? [];
      events.push([name, JSON.parse(data)]);
    }
  });
  return events;
}

const call = (id: string, durationMs: number | null = null) =>
  ({ id, durationMs }) as unknown as CallView;

test("changes of a call in a tenth of a second are one event", async () => {
  const { change, listener, open } = await start();
  const events = read(await open());
  await vi.waitFor(() => expect(events.length).toBe(3), patience);
  change(call("a"));
  change(call("b"));
  change(call("a", 7));
  listener.status({ callId: "a", atMs: 1, text: "two\nlines" });
  await vi.waitFor(() => expect(events.length).toBe(6), patience);
  expect(events.slice(3)).toEqual([
    ["call", call("a", 7)],
    ["call", call("b")],
    ["status", { callId: "a", atMs: 1, text: "two\nlines" }],
  ]);
});

test("of many changed calls fifty are told at a time, the newest first, and no forgotten one", async () => {
  const { change, known, open } = await start();
  const events = read(await open());
  await vi.waitFor(() => expect(events.length).toBe(3), patience);
  for (let number = 0; number < 140; number++) change(call(`c${number}`));
  for (let number = 0; number < 20; number++) known.delete(`c${number}`);
  await vi.waitFor(() => expect(events.length).toBe(123), patience);
  const ids = events.slice(3).map(([, data]) => (data as CallView).id);
  expect(ids[0]).toBe("c139");
  expect(new Set(ids)).toEqual(
    new Set(Array.from({ length: 120 }, (_, index) => `c${index + 20}`)),
  );
});

test("of a flood of output the newest 64 KiB are told", async () => {
  const { listener, open } = await start();
  const events = read(await open());
  await vi.waitFor(() => expect(events.length).toBe(3), patience);
  const text = "x".repeat(8_192);
  for (let number = 0; number < 100; number++)
    listener.output({ callId: `c${number}`, stream: "stdout", text });
  await vi.waitFor(() => expect(events.length).toBe(11), patience);
  expect(events.at(-1)?.[1]).toMatchObject({ callId: "c99" });
});

test("the worker's state is told when it has changed", async () => {
  const { worker, sample, open } = await start();
  const events = read(await open());
  await vi.waitFor(() => expect(events.length).toBe(3), patience);
  const taken = { calls: 1 } as Sample;
  sample(taken);
  worker.isReady = false;
  sample(taken);
  await vi.waitFor(() => expect(events.length).toBe(6), patience);
  expect(events.slice(3)).toEqual([
    ["sample", taken],
    ["state", { isReady: false }],
    ["sample", taken],
  ]);
});

test("a page that does not read loses its stream", async () => {
  const { worker, sample, closed, open } = await start();
  const response = await open();
  response.pause();
  let count = 0;
  const more = setInterval(() => {
    Object.assign(worker, { warnings: [`${count++}`.padEnd(1024 * 1024)] });
    sample({} as Sample);
  }, 10);
  onTestFinished(() => clearInterval(more));
  // Its buffers and those of the kernel fill; then the worker ends it.
  await vi.waitFor(() => expect(closed.size).toBe(1), patience);
});

test("a page that opens takes no change of state from the others", async () => {
  const { worker, open } = await start();
  const first = read(await open());
  await vi.waitFor(() => expect(first.length).toBe(3), patience);
  worker.isReady = false;
  read(await open());
  await vi.waitFor(() => expect(first[3]).toEqual(["state", { isReady: false }]), patience);
});

test("sixteen pages can be open, and a closed one makes room", async () => {
  const { refused, open } = await start();
  const pages = await Promise.all(Array.from({ length: 16 }, open));
  expect((await open()).statusCode).toBe(429);
  expect(refused).toEqual([expect.any(HttpError)]);
  pages[0]?.destroy();
  await vi.waitFor(async () => expect((await open()).statusCode).toBe(200), patience);
});

test("its end ends the streams, and follows nothing more", async () => {
  const { streams, listeners, open } = await start();
  const response = await open();
  read(response);
  const ended = once(response, "end");
  streams[Symbol.dispose]();
  await ended;
  expect(listeners.size).toBe(0);
});
