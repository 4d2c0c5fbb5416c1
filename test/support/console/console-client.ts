/**
 * What a page of the console does, over HTTP.
 */
import { type ClientRequest, type IncomingMessage, request as send } from "node:http";
import { once } from "node:events";
import type { CallDetail, NewCall, StoredInput } from "../../../worker/console/api.ts";

/** A request of a test. */
export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** An answer with its body. */
export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** One event of the stream. */
export interface StreamEvent {
  readonly name: string;
  readonly data: unknown;
}

/** Sends a request with exactly these headers beside Host. */
export async function ask(port: number, asked: Asked): Promise<Answered> {
  const response = await responseOf(begin(port, asked));
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  const { statusCode = 0, headers } = response;
  return { status: statusCode, headers, body: Buffer.concat(chunks) };
}

function begin(port: number, { method = "GET", path, headers, body }: Asked): ClientRequest {
  const request = send({ host: "127.0.0.1", port, method, path, headers, agent: false });
  request.end(body);
  return request;
}

async function responseOf(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return response;
}

/** A page that has the token. */
export class ConsoleClient {
  readonly port: number;
  /** Headers of its requests. */
  readonly headers: Readonly<Record<string, string>>;

  private constructor(port: number, token: string) {
    this.port = port;
    this.headers = { authorization: `Bearer ${token}` };
  }

  /** Rejects while the console does not take the token. */
  static async open(port: number, token: string): Promise<ConsoleClient> {
    const client = new ConsoleClient(port, token);
    const { status } = await client.ask({ path: "/api/calls/none" });
    if (status !== 404) throw new Error(`the console answers ${status}`);
    return client;
  }

  /** Sends a request as the page does. */
  ask(asked: Asked): Promise<Answered> {
    return ask(this.port, { ...asked, headers: { ...this.headers, ...asked.headers } });
  }

  /** Makes a call; its id. */
  async call(call: Partial<NewCall> & Pick<NewCall, "tool">): Promise<string> {
    const body = { arguments: {}, inputs: {}, ...call };
    return (await this.#json<{ id: string }>("POST", "/api/calls", body)).id;
  }

  async detail(id: string): Promise<CallDetail> {
    return await this.#json("GET", `/api/calls/${id}`);
  }

  /** Stores an input. */
  async put(name: string, content: string): Promise<StoredInput> {
    const path = `/api/inputs/${encodeURIComponent(name)}`;
    const { status, body } = await this.ask({ method: "PUT", path, body: content });
    if (status !== 201) throw new Error(`${status} ${body.toString()}`);
    return JSON.parse(body.toString()) as StoredInput;
  }

  /** Events until the signal aborts. */
  async *events(signal: AbortSignal): AsyncGenerator<StreamEvent, void> {
    const request = begin(this.port, { path: "/api/events", headers: this.headers });
    using _end = { [Symbol.dispose]: () => void request.destroy() };
    signal.addEventListener("abort", () => request.destroy(), { once: true });
    const response = await responseOf(request);
    // The abort.
    for (const each of [request, response]) each.on("error", () => undefined);
    response.setEncoding("utf8");
    let [name, rest] = ["", ""];
    try {
      for await (const chunk of response as AsyncIterable<string>) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          if (line.startsWith("event: ")) name = line.slice("event: ".length);
          if (line.startsWith("data: ")) yield { name, data: JSON.parse(line.slice(6)) as unknown };
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #json<Body>(method: string, path: string, sent?: object): Promise<Body> {
    const headers = { "content-type": "application/json" };
    const asked = { method, path, headers, ...(sent && { body: JSON.stringify(sent) }) };
    const { status, body } = await this.ask(asked);
    if (status >= 400) throw new Error(`${status} ${body.toString()}`);
    return JSON.parse(body.toString()) as Body;
  }
}
