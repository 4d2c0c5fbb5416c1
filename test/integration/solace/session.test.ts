/**
 * Sessions of the real library with the SMF test broker: login and its refusals, keep-alives,
 * outages, TLS.
 */
import { once } from "node:events";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import solace from "solclientjs";
import { describe, expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import type { Login } from "../../../harness/fakes/solace/wire/client-control.ts";
import { patience } from "../../support/patience.ts";
import { subcodeOf } from "./library.ts";
import { Peer } from "./peer.ts";
import { openRaw, transports, urlOver } from "./transports.ts";

const events = solace.SessionEventCode;

describe.each(transports)("a login over %s", (transport) => {
  test("tells each side who the other is", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const logins: Login[] = [];
    broker.faults.login = (login) => void logins.push(login);
    await using peer = await Peer.connect(urlOver(transport, broker), {
      vpnName: "a-vpn",
      userName: "someone",
      password: "secret",
      clientName: "worker/host/1",
      applicationDescription: "a test",
    });
    expect(logins).toMatchObject([
      {
        clientName: "worker/host/1",
        vpn: "a-vpn",
        scheme: "basic",
        username: "someone",
        password: "secret",
        accessToken: undefined,
        certificateName: undefined,
        description: "a test",
      },
    ]);
    expect(broker.clients).toEqual(["worker/host/1"]);
    const { session } = peer;
    expect(session.getSessionProperties().vpnNameInUse).toBe("a-vpn");
    expect(session.isCapable(solace.CapabilityType.AD_APP_ACK_FAILED)).toBe(true);
    expect(session.isCapable(solace.CapabilityType.GUARANTEED_MESSAGE_PUBLISH)).toBe(true);
    expect(session.isCapable(solace.CapabilityType.TEMPORARY_ENDPOINT)).toBe(false);
  });

  test.each([
    [401, "Unauthorized", "LOGIN_FAILURE"],
    [403, "Forbidden", "CLIENT_ACL_DENIED"],
    [403, "Message VPN Not Allowed", "MESSAGE_VPN_NOT_ALLOWED"],
    [503, "Too Many Clients", "TOO_MANY_CLIENTS"],
  ])("that is refused with %i %s fails as %s", async (code, text, subcode) => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.faults.login = () => ({ code, text });
    expect(await subcodeOf(Peer.connect(urlOver(transport, broker)))).toBe(subcode);
    expect(broker.clients).toEqual([]);
  });

  test("under the name of another client is refused until that one is gone", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const first = await Peer.connect(urlOver(transport, broker), { clientName: "same" });
    const again = (): Promise<Peer> =>
      Peer.connect(urlOver(transport, broker), { clientName: "same" });
    expect(await subcodeOf(again())).toBe("CLIENT_NAME_ALREADY_IN_USE");
    const gone = once(broker.events, "disconnected");
    await first[Symbol.asyncDispose]();
    await gone;
    await using second = await again();
    expect(second.told).toEqual(["UP_NOTICE"]);
  });

  test("that is not answered runs out of time", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.faults.login = () => "silence";
    const attempt = Peer.connect(urlOver(transport, broker), { connectTimeoutInMsecs: 500 });
    expect(await subcodeOf(attempt)).toBe("TIMEOUT");
  });

  test("by what is no SMF ends the connection", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const client = openRaw(transport, broker);
    client.resume();
    client.write("GET / HTTP/1.1\r\nHost: broker\r\n\r\n");
    await once(client, "close");
  });
});

describe.each(transports)("an outage over %s", (transport) => {
  test("of the connection ends with the library's subscriptions in force again", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, broker));
    await peer.subscribe("a/>");
    const back = peer.next(events.RECONNECTED_NOTICE);
    broker.dropAll();
    await back;
    expect(peer.told).toEqual([
      "UP_NOTICE",
      "SUBSCRIPTION_OK",
      "RECONNECTING_NOTICE",
      "RECONNECTED_NOTICE",
    ]);
    peer.send("a/b", "after");
    await vi.waitFor(() => expect(peer.heard).toMatchObject([{ body: "after" }]), patience);
  });

  test("of the broker ends when it is there again, on its port", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, broker));
    const { port } = broker;
    const [lost, back] = [
      peer.next(events.RECONNECTING_NOTICE),
      peer.next(events.RECONNECTED_NOTICE),
    ];
    await broker.stop();
    await lost;
    await expect(Peer.connect(urlOver(transport, broker))).rejects.toThrow();
    await broker.start();
    await back;
    expect(broker.port).toBe(port);
  });

  test("that is silent is noticed by keep-alives", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, broker), {
      keepAliveIntervalInMsecs: 50,
      keepAliveIntervalsLimit: 3,
    });
    const lost = peer.next(events.RECONNECTING_NOTICE);
    broker.faults.mutesKeepAlives = true;
    expect(await lost).toMatchObject({ errorSubcode: solace.ErrorSubcode.KEEP_ALIVE_FAILURE });
  });

  test("is none while keep-alives are answered", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, broker), {
      keepAliveIntervalInMsecs: 50,
      keepAliveIntervalsLimit: 100,
    });
    // Many more than the library would stand without an answer.
    const answered = vi.fn();
    Object.defineProperty(broker.faults, "mutesKeepAlives", {
      get: () => void answered(),
    });
    await vi.waitFor(() => expect(answered.mock.calls.length).toBeGreaterThan(5), patience);
    expect(peer.told).toEqual(["UP_NOTICE"]);
  });
});

describe.each(transports)("TLS over %s", (transport) => {
  const run = promisify(execFile);

  /**
   * A key and a certificate of `name`, signed by itself, as files. Over TCP the library takes an
   * address for "localhost", over WebSockets for what it is.
   */
  async function makeCertificate(directory: string, name: string) {
    const [key, cert] = [join(directory, `${name}.key`), join(directory, `${name}.pem`)];
    const names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    const subject = ["-subj", `/CN=${name}`, "-addext", names];
    const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    const files = ["-nodes", "-days", "2", "-keyout", key, "-out", cert];
    await run("openssl", [...kind, ...files, ...subject]);
    return { key, cert };
  }

  test("is spoken with clients that trust the broker, and that it trusts", async () => {
    await using owned = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), "smf-tls-"));
    owned.defer(() => rm(directory, { recursive: true }));
    const server = await makeCertificate(directory, "broker");
    const client = await makeCertificate(directory, "worker");
    const stranger = await makeCertificate(directory, "stranger");
    const broker = owned.use(
      await startSmfBroker({
        webPort: 0,
        tls: {
          cert: await readFile(server.cert),
          key: await readFile(server.key),
          clientCa: await readFile(client.cert),
        },
      }),
    );
    expect(urlOver(transport, broker)).toMatch(`${transport}s:`);
    const logins: Login[] = [];
    broker.faults.login = (login) => void logins.push(login);
    const as = (own: { key: string; cert: string }, trusted: { cert: string }): Promise<Peer> =>
      Peer.connect(urlOver(transport, broker), {
        authenticationScheme: solace.AuthenticationScheme.CLIENT_CERTIFICATE,
        sslTrustStores: [trusted.cert],
        sslCertificate: own.cert,
        sslPrivateKey: own.key,
        userName: "",
        password: "",
      });
    const peer = owned.use(await as(client, server));
    await peer.subscribe("t");
    peer.send("t", "over TLS");
    await vi.waitFor(() => expect(peer.heard).toMatchObject([{ body: "over TLS" }]), patience);
    expect(logins).toMatchObject([{ scheme: "client-certificate", certificateName: "worker" }]);
    expect(await subcodeOf(as(client, stranger))).toBe("CONNECTION_ERROR");
    // With TLS 1.3 a client is refused after it believes to be connected, and before a WebSocket
    // is.
    const refusal = { tcp: "COMMUNICATION_ERROR", ws: "CONNECTION_ERROR" }[transport];
    expect(await subcodeOf(as(stranger, server))).toBe(refusal);
    expect(logins).toHaveLength(1);
  });

  test("carries an access token, and the next one after an outage", async () => {
    await using owned = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), "smf-tls-"));
    owned.defer(() => rm(directory, { recursive: true }));
    const { cert, key } = await makeCertificate(directory, "broker");
    const broker = owned.use(
      await startSmfBroker({
        webPort: 0,
        tls: { cert: await readFile(cert), key: await readFile(key) },
      }),
    );
    const logins: Login[] = [];
    broker.faults.login = (login) => void logins.push(login);
    const [token, nextToken] = ["a".repeat(1_500), "b"];
    const peer = owned.use(
      await Peer.connect(urlOver(transport, broker), {
        authenticationScheme: solace.AuthenticationScheme.OAUTH2,
        sslTrustStores: [cert],
        accessToken: token,
      }),
    );
    peer.session.updateAuthenticationOnReconnect({ accessToken: nextToken });
    const back = peer.next(events.RECONNECTED_NOTICE);
    broker.dropAll();
    await back;
    expect(logins).toMatchObject([
      { scheme: "oauth", accessToken: token },
      { scheme: "oauth", accessToken: nextToken },
    ]);
  });
});
