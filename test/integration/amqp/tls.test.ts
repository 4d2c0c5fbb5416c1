/**
 * The RabbitMQ adapter over TLS, and with a certificate instead of a password.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AmqpTlsFiles } from "../../../worker/broker/amqp/config.ts";
import { quickPlace } from "../../support/quick-place.ts";
import { Authority, type Certificate } from "../../support/rabbitmq-certificates.ts";
import { amqpBroker } from "../../support/rabbitmq-options.ts";
import { never, newNamespace, useRabbitMQ } from "./node.ts";

const passphrase = "open sesame";
let directory: string;
let authority: Authority;
let worker: Certificate;

// Runs before the hook of the node, which uses it.
beforeAll(async () => {
  directory = await mkdtemp(join(quickPlace, "str-certificates-"));
  authority = await Authority.create(directory);
  worker = await authority.issue("worker-7", "DNS:worker-7", passphrase);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const node = useRabbitMQ(async () => {
  const server = await authority.issue("server", "IP:127.0.0.1");
  return {
    tls: { ca: authority.cert, ...server },
    plugins: ["rabbitmq_auth_mechanism_ssl"],
    settings: [
      "auth_mechanisms.1 = PLAIN",
      "auth_mechanisms.2 = EXTERNAL",
      "ssl_cert_login_from = common_name",
    ],
  };
});

const noFiles = {
  caFile: undefined,
  certFile: undefined,
  keyFile: undefined,
  keyPassphrase: undefined,
};
const trusting = () => ({ ...noFiles, caFile: authority.cert });
const certified = () => ({ ...trusting(), certFile: worker.cert, keyFile: worker.key });
const url = (user = ""): string => `amqps://${user}127.0.0.1:${node().tlsPort}`;

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

  test("a broker whose certificate nobody known has signed is refused at once", async () => {
    await expect(connect(url("guest:guest@"), noFiles)).rejects.toMatchObject({
      transient: false,
      message: expect.stringMatching(/^Cannot connect to the broker at amqps:.*CERT|SELF_SIGNED/),
    });
  });

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
    const tls = { ...certified(), keyPassphrase: passphrase };
    await expect(connect(url(), tls)).rejects.toMatchObject({
      transient: false,
      message: expect.stringContaining("refused the login"),
    });
    await node().control("add_user", "worker-7", "never used");
    await node().control("clear_password", "worker-7");
    await node().control("set_permissions", "worker-7", ".*", ".*", ".*");
    expect(await connect(url(), tls)).toBe("unroutable");
  });

  test("cannot open its key with another passphrase, and says so at once", async () => {
    const tls = { ...certified(), keyPassphrase: "wrong" };
    const error: unknown = await connect(url(), tls).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "BrokerError", transient: false });
    expect(String(error)).not.toContain("wrong");
  });
});
