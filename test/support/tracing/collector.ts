/**
 * A collector of traces, which receives OTLP over HTTP.
 */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { type ReceivedSpan, spansOf } from "./otlp.ts";

/** What a collector has received so far. */
export interface Collector extends AsyncDisposable {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly endpoint: string;
  readonly spans: readonly ReceivedSpan[];
  readonly requests: readonly CollectorRequest[];
}

type CollectorRequest = Pick<IncomingMessage, "url" | "headers"> & { readonly body: Buffer };

/** Answers one request. */
export type Answering = (response: ServerResponse, request: CollectorRequest) => void;

/** Gives no answer. */
export const silence: Answering = () => undefined;

export async function startCollector(
  answer: Answering = (response) => response.writeHead(200).end(),
): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const requests: CollectorRequest[] = [];
  const server = createServer((message, response) => {
    void buffer(message).then((body) => {
      const request = { url: message.url, headers: message.headers, body };
      requests.push(request);
      spans.push(...spansOf(body));
      answer(response, request);
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
