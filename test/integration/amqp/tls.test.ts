/**
 * The RabbitMQ adapter over TLS, and with a certificate instead of a password.
 */
import { describe, expect, test } from "vitest";
import type { AmqpTlsFiles } from "../../../worker/broker/amqp/config.ts";
import { amqpBroker, noFiles } from "../../support/brokers/rabbitmq-options.ts";
import { never, newNamespace, useRabbitMQ } from "./node.ts";

const passphrase = "open sesame";

const node = useRabbitMQ();

const trusting = () => ({ ...noFiles, caFile: node().authority.cert });
const url = (user = ""): string => `amqps://${user}127.0.0.1:${node().tlsPort}`;

/** As a client whose certificate names this user. */
async function certified(user: string, closedWith?: string): Promise<AmqpTlsFiles> {
  const { cert, key } = await node().authority.issue(user, `DNS:${user}`, closedWith);
  return { ...trusting(), certFile: cert, keyFile: key };
}

async function connect(at: string, tls: AmqpTlsFiles): Promise<string> {
  const broker = amqpBroker({ url: at, namespace: newNamespace(), tls });
  await using session = await broker.connect(["echo"], never);
  const answer = { topic: "a/b", payload: Buffer.from("1") };
  return await session.publish(answer, never);
}

describe("over TLS", () => {
  test("a broker whose certificate is signed by the given authority is trusted", async () => {
    expect(await connect(url("guest:guest@"), trusting())).toBe("unroutable");
  });

  test(
    "a broker whose certificate nobody known has signed is refused at once",
    { tags: "promise-B2" },
    async () => {
      await expect(connect(url("guest:guest@"), noFiles)).rejects.toMatchObject({
        transient: false,
        message: expect.stringMatching(/^Cannot connect to the broker at amqps:.*CERT|SELF_SIGNED/),
      });
    },
  );

  test("a file that is not there is named", async () => {
    const tls = { ...trusting(), caFile: "/nowhere/ca.pem" };
    await expect(connect(url("guest:guest@"), tls)).rejects.toMatchObject({
      transient: false,
      message: expect.stringContaining("Cannot read the PEM file /nowhere/ca.pem"),
    });
  });
});

describe("a worker with a certificate and no user", () => {
  test("is whom the certificate names", async () => {
    const tls = { ...(await certified("nobody", passphrase)), keyPassphrase: passphrase };
    await expect(connect(url(), tls)).rejects.toMatchObject({
      transient: false,
      message: expect.stringContaining("refused the login"),
    });
    expect(await connect(url(), await certified("guest"))).toBe("unroutable");
  });

  test("cannot open its key with another passphrase, and says so at once", async () => {
    const tls = { ...(await certified("somebody", passphrase)), keyPassphrase: "wrong" };
    const error: unknown = await connect(url(), tls).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "BrokerError", transient: false });
    expect(String(error)).not.toContain("wrong");
  });
});
