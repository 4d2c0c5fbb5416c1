/**
 * What the RabbitMQ adapter reads and says without a broker.
 */
import { anyCharacter, fc, test } from "../../../support/properties/property.ts";
import { describe, expect } from "vitest";
import { parseAmqpUrl } from "../../../../worker/broker/amqp/address.ts";
import {
  commandFailure,
  connectFailure,
  consumerFailure,
} from "../../../../worker/broker/amqp/failures.ts";
import {
  brokerTimeOf,
  deliveryCount,
  toProperties,
} from "../../../../worker/broker/amqp/messages.ts";
import { amqpBroker } from "../../../support/brokers/rabbitmq-options.ts";
import { isAmqpUrl, maxCallSeconds, timeLimitProblem } from "../../../../worker/broker/open.ts";
import { keptLog } from "../../../support/workers/kept-log.ts";

describe("the URL of a broker", () => {
  test.each([
    [
      "amqp://rabbit",
      { isEncrypted: false, host: "rabbit", port: 5_672, virtualHost: "/", user: undefined },
    ],
    [
      "amqps://us%40er:p%2Fw%3A@rabbit.example.com:5/a%2Fb",
      {
        isEncrypted: true,
        host: "rabbit.example.com",
        port: 5,
        virtualHost: "a/b",
        user: { name: "us@er", password: "p/w:" },
        name: "amqps://rabbit.example.com:5/a%2Fb",
      },
    ],
    ["amqps://[::1]/", { host: "::1", port: 5_671, virtualHost: "/" }],
    ["amqp://u@h/%2F", { virtualHost: "/", user: { name: "u", password: "" } }],
  ])("%s is read", (text, address) => {
    expect(parseAmqpUrl(text)).toMatchObject([address]);
    expect(isAmqpUrl(text)).toBe(true);
  });

  test.each([
    "",
    "rabbit:5672",
    "http://rabbit",
    "amqp://",
    "amqp://rabbit/a/b",
    "amqp://rabbit?heartbeat=5",
    "amqp://rabbit#x",
    "amqp://u:%E0%A4%A@rabbit",
    "amqp://rabbit:99999",
    "amqp://user:12/secret@rabbit",
    "amqp://us/er:secret@rabbit/vhost",
  ])("%j is none", (text) => {
    expect(parseAmqpUrl(text)).toBeUndefined();
    expect(isAmqpUrl(text)).toBe(false);
  });
});

describe("a connection without TLS", () => {
  const event = "broker.connection_unencrypted";
  const warnings = (url: string): readonly object[] => {
    const log = keptLog();
    amqpBroker({ url, namespace: "test", log });
    return log.factsOf(event);
  };

  test("to another machine is warned of, without its password", () => {
    expect(warnings("amqp://me:hush@rabbit.example.com/tools")).toEqual([
      { host: "amqp://rabbit.example.com:5672/tools" },
    ]);
  });

  test.each([
    "amqps://me:hush@rabbit.example.com",
    "amqp://me:hush@localhost",
    "amqp://me:hush@127.0.0.1:5673/tools",
    "amqp://[::1]",
  ])("is not what %s is", (url) => {
    expect(warnings(url)).toEqual([]);
  });
});

test("a URL with several hosts is an address for each, with one user and virtual host", () => {
  const addresses = parseAmqpUrl("amqp://me:a,b@one,two:5673,[::1]/tools");
  expect(addresses?.map(({ name }) => name)).toEqual([
    "amqp://one:5672/tools",
    "amqp://two:5673/tools",
    "amqp://[::1]:5672/tools",
  ]);
  const users = new Set(addresses?.map(({ user }) => JSON.stringify(user)));
  expect([...users]).toEqual([JSON.stringify({ name: "me", password: "a,b" })]);
  expect(parseAmqpUrl("amqp://one,,two/tools")).toBeUndefined();
  expect(parseAmqpUrl(`amqp://${Array(17).fill("host").join()}/tools`)).toBeUndefined();
});

describe("a password", { tags: "promise-B1" }, () => {
  const piece = fc.string({ unit: fc.constantFrom(..."1/@:a?#é,"), maxLength: 4 });
  const path = fc.constantFrom("", "/", "/vhost", "/a%2Fb");

  test.prop([piece, piece, fc.constantFrom("amqp", "amqps"), path], { numRuns: 5_000 })(
    "that is not escaped is refused or read, and never shown as a part of the address",
    (before, after, scheme, rest) => {
      const text = `${scheme}://user:${before}Hush7${after}@rabbit${rest}`;
      for (const { name } of parseAmqpUrl(text) ?? []) expect(name).not.toMatch(/hush7/i);
    },
  );

  test.prop([fc.string({ unit: anyCharacter })])("that is escaped is read as it is", (password) => {
    fc.pre(password.isWellFormed());
    const [address] = parseAmqpUrl(`amqp://user:${encodeURIComponent(password)}@rabbit/v`) ?? [];
    expect(address?.user).toEqual({ name: "user", password });
    expect(address?.name).toBe("amqp://rabbit:5672/v");
  });
});

describe("headers", () => {
  test("tell when the broker took a message, where it is configured to", () => {
    expect(brokerTimeOf({ timestamp_in_ms: 1_790_000_000_123 })).toEqual({
      brokerTimeMs: 1_790_000_000_123,
    });
    expect(brokerTimeOf({ timestamp_in_ms: "yesterday" })).toEqual({});
    expect(brokerTimeOf(undefined)).toEqual({});
  });

  test("of the broker are no properties", () => {
    const headers = {
      "x-delivery-count": 2,
      "x-acquired-count": 2,
      "x-death": [],
      "x-first-death-reason": "rejected",
      "x-last-death-queue": "q",
      "x-mine": "kept",
    };
    expect(toProperties(headers)).toEqual({ "x-mine": "kept" });
    expect(toProperties(undefined)).toEqual({});
  });

  test("with the name of what every object has stay what they are", () => {
    const headers = Object.fromEntries([["__proto__", "polluted"]]);
    expect(Object.entries(toProperties(headers))).toEqual([["__proto__", "polluted"]]);
  });

  test.each([
    [undefined, false, 1],
    [undefined, true, 2],
    [{ "x-delivery-count": 3 }, true, 4],
    [{ "x-delivery-count": "3" }, true, 2],
    [{ "x-delivery-count": 0 }, true, 2],
    [{ "x-delivery-count": 4 }, false, 1],
  ])("%j, redelivered: %j, are of delivery %i", (headers, redelivered, count) => {
    expect(deliveryCount(headers, redelivered)).toBe(count);
  });
});

describe("a failure", () => {
  const address = parseAmqpUrl("amqps://worker:secret@rabbit/tools")![0]!;
  const coded = (code: string | number, message = "it says"): Error =>
    Object.assign(new Error(message), { code });
  const vhost = new Error("Expected ConnectionOpenOk; got <ConnectionClose channel:0>");

  test.each([
    ["a refused connection", coded("ECONNREFUSED"), true],
    ["a broker that is starting", new Error("Handshake terminated by server: 541"), true],
    ["a certificate of somebody else", coded("ERR_TLS_CERT_ALTNAME_INVALID"), false],
    ["a certificate of nobody known", coded("SELF_SIGNED_CERT_IN_CHAIN"), false],
    ["a refused login", new Error("Handshake terminated by server: 403 (…)"), false],
    ["a way to log in that it lacks", new Error("SASL mechanism EXTERNAL is not …"), false],
    ["a refused virtual host", vhost, false],
  ])("for %s says whether to try again", (_what, error, transient) => {
    const failure = connectFailure(error, address);
    expect(failure).toMatchObject({ name: "BrokerError", transient, cause: error });
    expect(failure.message).toContain("amqps://rabbit:5671/tools");
    expect(failure.message).not.toContain("secret");
  });

  test.each([
    [403, false, /^The broker did not declare it: it says. Give the user the permission$/],
    [406, false, /delete it when it is empty/],
    [540, false, /RabbitMQ 3.10 or newer is needed$/],
    [404, true, /^The broker did not declare it: it says$/],
  ])("of a command with reply code %i says what to do", (code, transient, message) => {
    expect(commandFailure(coded(code), "declare it")).toMatchObject({
      transient,
      message: expect.stringMatching(message),
    });
  });
});

describe("a consumer's failure", () => {
  const closed = (text: string): Error =>
    Object.assign(new Error(`Channel closed by server: 406 (PRECONDITION-FAILED) ${text}`), {
      code: 406,
    });

  test("for a call that was not settled in time names the variable", () => {
    const text = "delivery acknowledgement on channel 3 timed out. Timeout value used: 500 ms.";
    expect(consumerFailure(closed(text), "send")).toMatchObject({
      transient: true,
      message: expect.stringContaining("AMQP_CONSUMER_TIMEOUT_SECONDS"),
    });
  });

  test("for anything else is that of a command", () => {
    expect(consumerFailure(closed("unknown delivery tag 1"), "send").message).toMatch(
      /^The broker did not send: .*unknown delivery tag/,
    );
  });
});

describe("a tool's time limit", () => {
  const patience = { connectRetries: 0, connectRetryDelayMs: 1 };
  const rabbit = {
    kind: "amqp",
    url: "amqp://rabbit",
    tls: { caFile: undefined, certFile: undefined, keyFile: undefined, keyPassphrase: undefined },
    exchange: undefined,
    maxDeliveries: 5,
    consumerTimeoutSeconds: 1_800,
    ...patience,
  } as const;

  test("beyond the consumer timeout is a problem with its remedy", () => {
    expect(timeLimitProblem(rabbit, 840)).toBeUndefined();
    expect(maxCallSeconds(rabbit)).toBe(840);
    expect(timeLimitProblem(rabbit, 841)).toMatch(
      /^may run for 841 seconds and wait as long before, .* 1800 .*: lower its timeout_seconds, or raise .* to 1802$/,
    );
  });

  test("does not concern a DevBroker", () => {
    const dev = { kind: "dev", host: "h", port: 1, ...patience } as const;
    expect(timeLimitProblem(dev, 86_400)).toBeUndefined();
    expect(maxCallSeconds(dev)).toBe(Infinity);
  });
});
