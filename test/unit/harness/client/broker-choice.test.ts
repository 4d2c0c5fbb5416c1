/**
 * Which broker is meant by a URL, an address, or the name of a kind.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { chooseBroker } from "../../../../harness/client/broker-choice.ts";

const choose = (text: string, environment: Readonly<Record<string, string>> = {}) =>
  chooseBroker(text, { namespace: "ns", environment });

describe("the address of a DevBroker", () => {
  test.for([
    ["localhost:1234", "localhost", 1234],
    ["host.containers.internal:55554", "host.containers.internal", 55554],
    ["10.0.0.1", "10.0.0.1", 55555],
    ["[::1]:7", "::1", 7],
    ["[fe80::1]", "fe80::1", 55555],
    ["dev://localhost:1234", "localhost", 1234],
    ["dev://[::1]", "::1", 55555],
  ] as const)("%s is understood", ([text, host, port]) => {
    expect(choose(text)).toMatchObject({ config: { kind: "dev", host, port }, label: text });
  });

  test.for([
    ...["", ":1", "host:", "host:x", "host:65536", "::1", "a:1:2", "[]:1", "user@host:1"],
    ...["http://h:1", "dev://", "dev://user:s3cret@h", "dev://h/path", "dev://h?x"],
    ...["amqp://", "amqp:h", "tcp://u:s3cret@h/a/b", "tcp://u:s3cret@h/%zz", "tcp://h#x"],
    ...["amqp://user:1/s3cret@h", "tcp://user:1/s3cret@h", "amqp://user:a/s3cret@h"],
  ])('"%s" is refused, and not repeated', (text) => {
    expect(() => choose(text)).toThrow(/^broker: what is given is not accepted; accepted: HOST/);
    expect(() => choose(text)).not.toThrow("s3cret");
  });

  test("has no port of the environment, which is another broker's", () => {
    const environment = { DEV_BROKER_HOST: "other", DEV_BROKER_PORT: "1" };
    expect(choose("h", environment).config).toMatchObject({ host: "h", port: 55555 });
  });
});

describe("a URL of RabbitMQ", () => {
  const url = "amqps://user:s%2Fcret@h:5/v%2F";

  test("is the worker's AMQP_URL, and is shown without user and password", () => {
    const { config, label } = choose(url);
    expect(config).toMatchObject({ kind: "amqp", url });
    expect(label).toBe("amqps://h:5/v%2F");
  });

  test("leaves to the environment what it does not say, and which broker to nobody", () => {
    const environment = {
      AMQP_URL: "amqp://other",
      DEV_BROKER_HOST: "other",
      AMQP_EXCHANGE: "mesh",
      MANIFEST_PATH: "not read",
    };
    expect(choose(url, environment).config).toMatchObject({ url, exchange: "mesh" });
  });

  test("that the worker would refuse is refused in the worker's words", () => {
    const refused = () => choose("amqp://user:s3cret@h/a/b");
    expect(refused).toThrow(/^AMQP_URL: what is set is not accepted; accepted: `amqp:/);
    expect(refused).not.toThrow("s3cret");
  });
});

describe("the name of a kind", () => {
  test("knows the names of Solace Agent Mesh", () => {
    const environment = { SOLACE_BROKER_URL: "tcps://theirs", SOLACE_BROKER_VPN: "tools" };
    expect(choose("solace", environment).config).toMatchObject({
      host: "tcps://theirs",
      vpn: "tools",
    });
    expect(choose("tcp://h/v", environment).config).toMatchObject({ host: "tcp://h", vpn: "v" });
  });

  test("chooses among the variables", () => {
    const environment = {
      AMQP_URL: "amqp://u:s3cret@h",
      DEV_BROKER_HOST: "d",
      DEV_BROKER_PORT: "7",
    };
    const amqp = choose("amqp", environment);
    expect(amqp.config).toMatchObject({ kind: "amqp", url: "amqp://u:s3cret@h" });
    expect(amqp.label).toBe("the broker of AMQP_URL");
    expect(choose("dev", environment).config).toMatchObject({ kind: "dev", host: "d", port: 7 });
  });

  test.for([
    ["dev", "DEV_BROKER_HOST"],
    ["amqp", "AMQP_URL"],
    ["solace", "SOLACE_HOST"],
  ] as const)("%s needs %s", ([name, variable]) => {
    const missing = `broker: ${name} needs ${variable}, which is not set`;
    expect(() => choose(name)).toThrow(missing);
    expect(() => choose(name, { [variable]: "" })).toThrow(missing);
  });
});

describe("a secret in a file", () => {
  test("is read as the worker reads it, and told by the file's name when it cannot be", () => {
    const directory = mkdtempSync(join(tmpdir(), "str-choice-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const file = join(directory, "url");
    writeFileSync(file, "amqp://user:s3cret@h/mesh\n");
    expect(choose("amqp", { AMQP_URL_FILE: file })).toMatchObject({
      config: { kind: "amqp", url: "amqp://user:s3cret@h/mesh" },
      label: "the broker of AMQP_URL",
    });
    const missing = join(directory, "missing");
    expect(() => choose("amqp", { AMQP_URL_FILE: missing })).toThrow(
      `AMQP_URL_FILE: "${missing}" cannot be read: ENOENT`,
    );
  });
});
