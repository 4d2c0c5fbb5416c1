/**
 * Queues of a Solace broker by its management interface, SEMP version 2: what is there, who takes from it, and away with it.
 */
import { z } from "zod";
import { CommandError } from "../context.ts";

/** Milliseconds for the broker to answer a request. */
const requestTimeoutMs = 30_000;

/** Queues that are asked for at once, the broker's most. */
const pageSize = 100;

/** Pages of a list; a list that is longer ends with an error. */
const maxPages = 100;

/** Where the interface is and as whom to use it. */
export interface SempOptions {
  /** Such as `https://broker.example.com:943`. */
  readonly url: URL;
  readonly vpn: string;
  readonly username: string;
  readonly password: string;
}

/** What is known of a queue; undefined is what the broker does not tell. */
export interface QueueUse {
  readonly name: string;
  readonly consumers: number | undefined;
  /** Those included that are handed out and not settled. */
  readonly messages: number | undefined;
  /** Messages that came since the broker began to count, those included that are gone. */
  readonly spooled: number | undefined;
  /** How often somebody asked to take from it since then, the refused included. */
  readonly bindRequests: number | undefined;
}

/** What goes through a queue; undefined is what the broker does not tell. */
export interface QueueTraffic {
  readonly name: string;
  /** Messages that are handed out and not settled. */
  readonly unsettled: number | undefined;
  /** Messages that came since the broker began to count. */
  readonly spooled: number | undefined;
  /** What its messages take. */
  readonly sizeBytes: number | undefined;
}

const number = z.number().int().nonnegative().optional();

const traffic = z.object({
  queueName: z.string(),
  txUnackedMsgCount: number,
  spooledMsgCount: number,
  msgSpoolUsage: number,
});

const list = z.object({
  data: z.array(traffic),
  meta: z.object({ paging: z.object({ cursorQuery: z.string() }).optional() }),
});

const count = z.object({ count: number }).optional();

const details = z.object({
  collections: z.object({ txFlows: count, msgs: count }).optional(),
  data: z.object({ spooledMsgCount: number, bindRequestCount: number }),
});

const refusal = z.object({
  meta: z.object({ error: z.object({ description: z.string(), status: z.string() }) }),
});

/** What SEMP calls an object that is not there. */
const notFound = "NOT_FOUND";

/** The management of one message VPN. Throws CommandError, without the password in it, or the signal's reason. */
export class Semp {
  readonly #options: SempOptions;

  constructor(options: SempOptions) {
    this.#options = options;
  }

  /** What goes through the queues whose names begin with a text. */
  async traffic(prefix: string, signal: AbortSignal): Promise<QueueTraffic[]> {
    const found: QueueTraffic[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const query = new URLSearchParams({
        count: `${pageSize}`,
        select: Object.keys(traffic.shape).join(),
        where: `queueName==${prefix}*`,
        ...(cursor !== undefined && { cursor }),
      });
      const answer = await this.#ask("GET", `monitor/${this.#queues}?${query.toString()}`, signal);
      const { data, meta } = this.#read(list, answer);
      // A pattern may match more than is meant, if the prefix has characters of patterns itself.
      for (const { queueName: name, ...counts } of data) {
        if (!name.startsWith(prefix)) continue;
        const { txUnackedMsgCount, spooledMsgCount, msgSpoolUsage } = counts;
        found.push({
          name,
          unsettled: txUnackedMsgCount,
          spooled: spooledMsgCount,
          sizeBytes: msgSpoolUsage,
        });
      }
      cursor = meta.paging?.cursorQuery;
      if (cursor === undefined) return found;
    }
    throw new CommandError(`There are more than ${maxPages * pageSize} queues ${prefix}*`);
  }

  /** How a queue is used now; undefined when it is not there. */
  async use(name: string, signal: AbortSignal): Promise<QueueUse | undefined> {
    const answer = await this.#ask("GET", `monitor/${this.#queueAt(name)}`, signal);
    if (answer === undefined) return undefined;
    const { collections, data } = this.#read(details, answer);
    return {
      name,
      consumers: collections?.txFlows?.count,
      messages: collections?.msgs?.count,
      spooled: data.spooledMsgCount,
      bindRequests: data.bindRequestCount,
    };
  }

  /** Removes a queue with its messages. Whether it was there. */
  async remove(name: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#ask("DELETE", `config/${this.#queueAt(name)}`, signal)) !== undefined;
  }

  get #queues(): string {
    return `msgVpns/${encodeURIComponent(this.#options.vpn)}/queues`;
  }

  #queueAt(name: string): string {
    return `${this.#queues}/${encodeURIComponent(name)}`;
  }

  /** What the broker answers; undefined when it has no such object. */
  async #ask(method: "GET" | "DELETE", path: string, signal: AbortSignal): Promise<unknown> {
    const { url, username, password } = this.#options;
    const credentials = Buffer.from(`${username}:${password}`).toString("base64");
    let response: Response;
    let body: unknown;
    try {
      response = await fetch(new URL(`/SEMP/v2/${path}`, url), {
        method,
        headers: { accept: "application/json", authorization: `Basic ${credentials}` },
        // Credentials are for this host only.
        redirect: "error",
        signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeoutMs)]),
      });
      body = await response.json();
    } catch (error) {
      signal.throwIfAborted();
      throw new CommandError(`${this.#place} cannot be asked: ${reasonOf(error)}`, {
        cause: error,
      });
    }
    if (response.ok) return body;
    const said = refusal.safeParse(body).data?.meta.error;
    if (said?.status === notFound) return undefined;
    const who = [401, 403].includes(response.status) ? ` to the user ${username}` : "";
    throw new CommandError(
      `${this.#place} refused ${method} ${path.split("?", 1)[0]}${who}: ${said?.description ?? response.status}`,
    );
  }

  #read<T>(schema: z.ZodType<T>, answer: unknown): T {
    const parsed = schema.safeParse(answer);
    if (parsed.success) return parsed.data;
    throw new CommandError(`${this.#place} answered what SEMP version 2 does not`);
  }

  get #place(): string {
    return `The broker's SEMP at ${this.#options.url.origin}`;
  }
}

/** The network's reason stands one deeper than what fetch says. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message === "" && "code" in cause ? String(cause.code) : cause.message;
}
