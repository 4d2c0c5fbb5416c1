/**
 * The RabbitMQ that all files of a run share: it starts for the first that asks for it, and ends
 * with the run. Tests keep to namespaces and users of their own on it.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { quickPlace } from "../sandboxes/quick-place.ts";
import { Authority } from "./rabbitmq-certificates.ts";
import { type RabbitMQ, type RabbitMQPlace, RabbitMQUser, startRabbitMQ } from "./rabbitmq.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Loopback port where {@link sharedRabbitMQ} asks. */
    readonly sharedRabbitMQPort: number;
  }
}

/** The largest message that it takes. */
export const maxMessageBytes = 6_000_000;

/** What a file is told that asks for the node. */
interface Answer {
  readonly place?: RabbitMQPlace;
  readonly certificates?: string;
  /** Why there is none. */
  readonly problem?: string;
}

/** A node that others use as well. */
export interface SharedRabbitMQ extends RabbitMQ {
  /** Whose certificates its TLS listener trusts. */
  readonly authority: Authority;
}

/** Offers the node on a loopback port. Disposing ends both; one of the whole run owns it. */
export async function offerSharedRabbitMQ(): Promise<AsyncDisposable & { readonly port: number }> {
  const owned = new AsyncDisposableStack();
  let started: Promise<Answer> | undefined;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    started ??= start(owned).catch((error: unknown) => ({ problem: String(error) }));
    void started.then((answer) => socket.end(JSON.stringify(answer)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
      await started;
      await owned.disposeAsync();
    },
  };
}

async function start(owned: AsyncDisposableStack): Promise<Answer> {
  const certificates = await mkdtemp(join(quickPlace, "str-certificates-"));
  owned.defer(() => rm(certificates, { recursive: true, force: true }));
  const authority = await Authority.create(certificates);
  const node = await startRabbitMQ({
    tls: { ca: authority.cert, ...(await authority.issue("server", "IP:127.0.0.1")) },
    plugins: ["rabbitmq_auth_mechanism_ssl"],
    settings: [
      `max_message_size = ${maxMessageBytes}`,
      "auth_mechanisms.1 = PLAIN",
      "auth_mechanisms.2 = EXTERNAL",
      "ssl_cert_login_from = common_name",
    ],
  });
  owned.use(node);
  return { place: node.place, certificates };
}

/** The node of this run; starts it when nobody has asked before. */
export async function sharedRabbitMQ(port: number): Promise<SharedRabbitMQ> {
  const answer = JSON.parse(await text(connect(port, "127.0.0.1"))) as Answer;
  const { place, certificates, problem } = answer;
  if (place === undefined || certificates === undefined) throw new Error(problem);
  return Object.assign(new RabbitMQUser(place), { authority: new Authority(certificates) });
}
