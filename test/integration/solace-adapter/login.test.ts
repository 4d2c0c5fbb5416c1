/**
 * How the Solace adapter logs in, and what it says when it cannot.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import type { Login } from "../../../harness/fakes/solace/wire/client-control.ts";
import type { BrokerSession } from "../../../worker/broker/broker.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { patience } from "../../support/patience.ts";
import { Authority, type Certificate } from "../../support/brokers/rabbitmq-certificates.ts";
import { noTlsFiles, solaceBroker } from "../../support/brokers/solace-options.ts";
import { namespace, never, openPlace } from "./place.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

function tcpResources(): readonly string[] {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP"));
}

describe("a login", () => {
  test("says who the worker is, and in which message VPN", async () => {
    await using place = await openPlace({ vpn: "tools", username: "strü", password: "s€cret" });
    const logins: Login[] = [];
    place.server.faults.login = (login) => void logins.push(login);
    await using _one = await place.broker.connect([], never);
    await using _other = await place.broker.connect([], never);
    expect(logins).toMatchObject([
      { vpn: "tools", username: "strü", password: "s€cret", scheme: "basic" },
      { vpn: "tools" },
    ]);
    expect(logins[0]?.clientName).toMatch(/^str-worker\/worker\/[0-9a-f]{24}$/);
    expect(logins[0]?.clientName).not.toBe(logins[1]?.clientName);
  });

  test.each([
    [401, "Unauthorized", /refused the user str in the message VPN default: check user name/],
    [403, "Forbidden", /check the ACL profile/],
    [403, "Message VPN Not Allowed", /check the name of the message VPN/],
  ])("that is refused with %i %s is tried once", async (code, text, expected) => {
    await using place = await openPlace({ username: "str", password: "s€cret" });
    const logins = vi.fn(() => ({ code, text }));
    place.server.faults.login = logins;
    const refusal = place.broker.connect([], never);
    await expect(refusal).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
      message: expect.stringMatching(expected),
    });
    await expect(refusal).rejects.not.toMatchObject({ message: expect.stringContaining("s€cret") });
    expect(logins).toHaveBeenCalledTimes(1);
  });

  test("that the broker has no room for may be tried again", async () => {
    await using place = await openPlace();
    place.server.faults.login = () => ({ code: 503, text: "Too Many Clients" });
    await expect(place.broker.connect([], never)).rejects.toMatchObject({
      transient: true,
      message: expect.stringMatching(/^Cannot connect to the broker at tcp:\/\/127.0.0.1:\d+: Too/),
    });
  });

  test("where nobody listens may be tried again", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await vi.waitFor(() => expect(server.listening).toBe(true), patience);
    const { port } = server.address() as { port: number };
    server.close();
    const broker = solaceBroker({ host: `127.0.0.1:${port}`, namespace });
    await expect(broker.connect([], never)).rejects.toMatchObject({ transient: true });
  });

  test("is called off by its signal, and leaves nothing open", async () => {
    await using place = await openPlace();
    const before = tcpResources();
    const asked = Promise.withResolvers<void>();
    place.server.faults.login = () => {
      asked.resolve();
      return "silence";
    };
    const signals = new AbortController();
    const connecting = place.broker.connect([], signals.signal);
    await asked.promise;
    signals.abort(new Error("enough"));
    await expect(connecting).rejects.toThrow("enough");
    await vi.waitFor(() => expect(tcpResources()).toEqual(before), patience);
  });

  test("is not tried when the host is none", async () => {
    const broker = solaceBroker({ host: "http://broker", namespace });
    await expect(broker.connect([], never)).rejects.toMatchObject({
      transient: false,
      message: "The host of the broker is none of Solace",
    });
  });

  test.each([
    { password: "s€cret".repeat(30) },
    { vpn: "v".repeat(33) },
    { oauthToken: "token of a host without TLS" },
  ])("with what the library cannot use is not tried: %j", { tags: "promise-B3" }, async (given) => {
    const broker = solaceBroker({ host: "127.0.0.1:1", namespace, ...given });
    const refusal = broker.connect([], never);
    await expect(refusal).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
      message: expect.not.stringContaining("s€cret"),
    });
  });

  test.each([
    ["tcp://broker.example.com", true],
    ["tcps://broker.example.com, tcp://other", true],
    ["tcps://broker.example.com", false],
    ["127.0.0.1:55555, tcp://[::1]", false],
  ])("to %s is warned about when others can read it", { tags: "promise-B3" }, (host, isWarned) => {
    const log = keptLog();
    solaceBroker({ host, namespace, log });
    const warning = "broker.connection_unencrypted";
    expect(log.events).toEqual(isWarned ? [warning] : []);
  });
});

describe("TLS", () => {
  const localNames = "IP:127.0.0.1,DNS:localhost";

  async function openAuthority(stack: AsyncDisposableStack): Promise<[Authority, string]> {
    const directory = await mkdtemp(join(tmpdir(), "solace-tls-"));
    stack.defer(() => rm(directory, { recursive: true }));
    return [await Authority.create(directory), directory];
  }

  async function tlsOf({ cert, key }: Certificate, clientCa?: string) {
    return {
      cert: await readFile(cert),
      key: await readFile(key),
      ...(clientCa !== undefined && { clientCa: await readFile(clientCa) }),
    };
  }

  test(
    "trusts the file or the directory that it is given, and nobody else",
    { tags: "promise-B2" },
    async () => {
      await using stack = new AsyncDisposableStack();
      const [authority, directory] = await openAuthority(stack);
      const tls = await tlsOf(await authority.issue("broker", localNames));
      const server = stack.use(await startSmfBroker({ tls }));
      const trusted = join(directory, "trusted");
      await mkdir(trusted);
      await writeFile(join(trusted, "ca.pem"), await readFile(authority.cert));
      await writeFile(join(trusted, "README"), "no certificate");
      const host = `smfs://127.0.0.1:${server.port}`;
      for (const trustStorePath of [authority.cert, trusted]) {
        const broker = solaceBroker({ host, namespace, tls: { ...noTlsFiles, trustStorePath } });
        await using _session = await broker.connect(["echo"], never);
      }
      const trusting = solaceBroker({ host, namespace });
      await expect(trusting.connect([], never)).rejects.toMatchObject({
        transient: false,
        message: expect.stringMatching(/^Cannot connect .*certificate/),
      });
    },
  );

  test("refuses a broker whose certificate is another host's", { tags: "promise-B2" }, async () => {
    await using stack = new AsyncDisposableStack();
    const [authority] = await openAuthority(stack);
    const tls = await tlsOf(await authority.issue("broker", "DNS:other.example.com"));
    const server = stack.use(await startSmfBroker({ tls }));
    const logins = vi.fn();
    server.faults.login = logins;
    const broker = solaceBroker({
      host: `tcps://127.0.0.1:${server.port}`,
      namespace,
      tls: { ...noTlsFiles, trustStorePath: authority.cert },
    });
    await expect(broker.connect([], never)).rejects.toMatchObject({ transient: false });
    expect(logins).not.toHaveBeenCalled();
  });

  test(
    "shows the worker's certificate to a broker that asks for one",
    { tags: "full" },
    async () => {
      await using stack = new AsyncDisposableStack();
      const [authority] = await openAuthority(stack);
      const tls = await tlsOf(await authority.issue("broker", localNames), authority.cert);
      const server = stack.use(await startSmfBroker({ tls }));
      const logins: Login[] = [];
      server.faults.login = (login) => void logins.push(login);
      const { cert, key } = await authority.issue("worker", "DNS:worker", "open sesame");
      const files = {
        trustStorePath: authority.cert,
        clientCertPath: cert,
        clientKeyPath: key,
        clientKeyPassphrase: "open sesame",
      };
      const host = `tcps://127.0.0.1:${server.port}`;
      await using _session = await solaceBroker({ host, namespace, tls: files }).connect([], never);
      expect(logins).toMatchObject([{ scheme: "client-certificate", certificateName: "worker" }]);
    },
  );

  test("carries an access token", async () => {
    await using stack = new AsyncDisposableStack();
    const [authority] = await openAuthority(stack);
    const tls = await tlsOf(await authority.issue("broker", localNames));
    const server = stack.use(await startSmfBroker({ tls }));
    const logins: Login[] = [];
    server.faults.login = (login) => void logins.push(login);
    const broker = solaceBroker({
      host: `tcps://127.0.0.1:${server.port}`,
      namespace,
      oauthToken: "token",
      tls: { ...noTlsFiles, trustStorePath: authority.cert },
    });
    await using _session = await broker.connect([], never);
    expect(logins).toMatchObject([{ scheme: "oauth", accessToken: "token" }]);
  });

  test("carries the access token that its file has at that moment", async () => {
    await using stack = new AsyncDisposableStack();
    const [authority, directory] = await openAuthority(stack);
    const tls = await tlsOf(await authority.issue("broker", localNames));
    const server = stack.use(await startSmfBroker({ tls }));
    let valid = "first";
    server.faults.login = ({ scheme, accessToken }) =>
      scheme === "oauth" && accessToken === valid ? undefined : { code: 401, text: "Unauthorized" };
    const oauthTokenFile = join(directory, "token");
    await writeFile(oauthTokenFile, "first\n");
    const host = `tcps://127.0.0.1:${server.port}`;
    const trusting = { ...noTlsFiles, trustStorePath: authority.cert };
    const broker = solaceBroker({ host, namespace, oauthTokenFile, tls: trusting });
    const log = keptLog();
    const backoff = { baseMs: 5, capMs: 5 };
    const lasting = reconnecting(broker, { maxAttempts: 0, backoff, log });
    await using session = await lasting.connect([], never);
    // The token expires, and the broker ends the connection, before there is another one.
    valid = "second";
    server.dropAll();
    const refused = `refused the OAuth token in ${oauthTokenFile}`;
    await vi.waitFor(() => expect(JSON.stringify(log.lines)).toContain(refused), patience);
    await rm(oauthTokenFile);
    const missing = `Cannot use ${oauthTokenFile} as OAuth token`;
    await vi.waitFor(() => expect(JSON.stringify(log.lines)).toContain(missing), patience);
    await writeFile(oauthTokenFile, "second");
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
  });

  test("names the file of an access token that is empty", async () => {
    const broker = solaceBroker({
      host: "tcps://127.0.0.1:1",
      namespace,
      oauthTokenFile: "/dev/null",
    });
    await expect(broker.connect([], never)).rejects.toMatchObject({
      transient: false,
      message: "Cannot use /dev/null as OAuth token: it is empty",
    });
  });

  test.each([
    ["trustStorePath", { trustStorePath: "/nowhere/x.pem" }],
    ["clientCertPath", { clientCertPath: "/nowhere/x.pem", clientKeyPath: "/nowhere/key.pem" }],
  ])("names the file of %s that cannot be read", async (_option, files) => {
    const tls = { ...noTlsFiles, ...files };
    const broker = solaceBroker({ host: "tcps://127.0.0.1:1", namespace, tls });
    await expect(broker.connect([], never)).rejects.toMatchObject({
      transient: false,
      message: expect.stringContaining("/nowhere/x.pem"),
    });
  });

  test("names a key that does not open, and a trust store without certificates", async () => {
    await using stack = new AsyncDisposableStack();
    const [authority, directory] = await openAuthority(stack);
    const { cert, key } = await authority.issue("worker", "DNS:worker", "open sesame");
    const empty = join(directory, "empty.pem");
    await writeFile(empty, "no certificate");
    for (const [files, file] of [
      [{ clientCertPath: cert, clientKeyPath: key, clientKeyPassphrase: "open" }, key],
      [{ trustStorePath: empty }, empty],
    ] as const) {
      const tls = { ...noTlsFiles, ...files };
      const broker = solaceBroker({ host: "tcps://127.0.0.1:1", namespace, tls });
      await expect(broker.connect([], never)).rejects.toMatchObject({
        transient: false,
        message: expect.stringContaining(`Cannot use ${file} for TLS`),
      });
    }
  });
});

describe("no password, token or passphrase", () => {
  const secret = "s3cret-of-the-worker";

  test(
    "is in an error or in the log of a login that is refused or lost, however deep one looks",
    { tags: "promise-B1" },
    async () => {
      await using stack = new AsyncDisposableStack();
      const directory = await mkdtemp(join(tmpdir(), "solace-secrets-"));
      stack.defer(() => rm(directory, { recursive: true }));
      const authority = await Authority.create(directory);
      const { cert, key } = await authority.issue("broker", "IP:127.0.0.1,DNS:localhost");
      const tls = { cert: await readFile(cert), key: await readFile(key) };
      const server = stack.use(await startSmfBroker({ tls }));
      const worker = await authority.issue("worker", "DNS:worker", secret);
      const log = keptLog();
      const errors: unknown[] = [];
      const trusting = { ...noTlsFiles, trustStorePath: authority.cert };
      const files = { clientCertPath: worker.cert, clientKeyPath: worker.key };
      for (const identity of [
        { username: "str", password: secret, tls: trusting },
        { oauthToken: secret, tls: trusting },
        { tls: { ...trusting, ...files, clientKeyPassphrase: secret } },
        { tls: { ...trusting, ...files, clientKeyPassphrase: `no-${secret}` } },
        { username: "str", password: secret.repeat(20), tls: trusting },
      ]) {
        const host = `tcps://127.0.0.1:${server.port}`;
        const broker = solaceBroker({ host, namespace, log, ...identity });
        for (const text of ["Unauthorized", "Too Many Clients"]) {
          server.faults.login = () => ({ code: text === "Unauthorized" ? 401 : 503, text });
          errors.push(await broker.connect(["echo"], never).catch((error: unknown) => error));
        }
        server.faults.login = undefined;
        const session = await broker.connect(["echo"], never).catch((error: unknown) => error);
        if (session instanceof Error) {
          errors.push(session);
        } else {
          server.dropAll();
          const lasting = session as BrokerSession;
          errors.push(await lasting.closed);
          await lasting[Symbol.asyncDispose]();
        }
      }
      expect(errors).toHaveLength(15);
      const everything = inspect([errors, log.lines], { depth: Infinity, showHidden: true });
      expect(everything).toContain("Unauthorized");
      expect(everything).not.toContain(secret);
      expect(everything).not.toContain(Buffer.from(secret).toString("base64").slice(0, 20));
    },
  );
});
