/**
 * The worker's adapter over every transport: it connects, serves, answers, settles, and notices
 * when it is cut off.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import type { Login } from "../../../harness/fakes/solace/wire/client-control.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { connectSolacePeer } from "../../conformance/peers/solace-peer.ts";
import { patience } from "../../support/patience.ts";
import { Authority } from "../../support/brokers/rabbitmq-certificates.ts";
import { solaceBroker } from "../../support/brokers/solace-options.ts";
import { transports, urlOver } from "./transports.ts";

const namespace = "test/adapter";
const never = new AbortController().signal;

describe.each(transports)("a worker over %s", (transport) => {
  test("serves calls, and takes up again after an outage what it had not settled", async () => {
    await using server = await startSmfBroker({ webPort: 0, rejectsUnmatched: true });
    const broker = solaceBroker({ host: urlOver(transport, server), namespace });
    await using agent = await connectSolacePeer({ url: server.url });
    const answer = await agent.listen("replies/>");
    const call = (text: string): Promise<void> =>
      agent.publish(invokeTopic(namespace, "echo"), text, { replyTo: "replies/1" });
    const depth = (): number | undefined => server.queue(`${namespace}/q/sandbox/default`)?.depth;

    await using session = await broker.connect(["echo"], never);
    const deliveries = pull(session);
    await call('{"n": 1}');
    const first = await deliveries.next();
    expect(textOf(first)).toBe('{"n": 1}');
    expect(first).toMatchObject({ deliveryCount: 1, properties: { replyTo: "replies/1" } });
    const reply = { topic: "replies/1", payload: Buffer.from('"done"') };
    expect(await session.publish(reply, never)).toBe("confirmed");
    expect((await answer()).payload).toBe('"done"');
    await first.settle("accepted");
    await vi.waitFor(() => expect(depth()).toBe(0), patience);

    await call('{"n": 2}');
    await deliveries.next();
    server.dropAll();
    expect(await session.closed).toMatchObject({ reason: "lost" });
    await using again = await broker.connect(["echo"], never);
    const second = await pull(again).next();
    expect(textOf(second)).toBe('{"n": 2}');
    expect(second.deliveryCount).toBe(2);
    await second.settle("accepted");
    await vi.waitFor(() => expect(depth()).toBe(0), patience);
  });

  test("logs in with TLS where it trusts the broker and is trusted, and not elsewhere", async () => {
    await using stack = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), "smf-adapter-"));
    stack.defer(() => rm(directory, { recursive: true }));
    const authority = await Authority.create(directory);
    const { cert, key } = await authority.issue("broker", "IP:127.0.0.1,DNS:localhost");
    const tls = {
      cert: await readFile(cert),
      key: await readFile(key),
      clientCa: await readFile(authority.cert),
    };
    const server = stack.use(await startSmfBroker({ webPort: 0, tls }));
    const logins: Login[] = [];
    server.faults.login = (login) => void logins.push(login);
    const worker = await authority.issue("worker", "DNS:worker", "open sesame");
    const own = {
      clientCertPath: worker.cert,
      clientKeyPath: worker.key,
      clientKeyPassphrase: "open sesame",
    };
    const host = urlOver(transport, server);
    const connect = (trustStorePath: string | undefined) =>
      solaceBroker({ host, namespace, tls: { ...own, trustStorePath } }).connect([], never);
    await using _session = await connect(authority.cert);
    expect(logins).toMatchObject([{ scheme: "client-certificate", certificateName: "worker" }]);
    await expect(connect(undefined)).rejects.toMatchObject({
      transient: false,
      message: expect.stringMatching(/^Cannot connect .*certificate/),
    });
    expect(logins).toHaveLength(1);
  });
});
