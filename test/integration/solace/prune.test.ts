/**
 * `harness queues prune`: queues that nobody serves, found and removed by the management interface of the broker.
 */
import { describe, expect, test } from "vitest";
import { type SmfBroker, startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { type SempServer, startSemp } from "../../../harness/fakes/solace/semp.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { CliProcess, type CliResult, runCli } from "../harness/cli-process.ts";
import { queue, topic } from "./messages.ts";
import { Peer } from "./peer.ts";

const namespace = "test/prune";
const password = "s3cret/p@ss";

/** A broker that can be managed, with queues in every kind of use. */
interface Place extends AsyncDisposable {
  readonly broker: SmfBroker;
  readonly semp: SempServer;
  /** Names of the queues of the namespace. */
  queues(): readonly string[];
  prune(args: readonly string[], environment?: Record<string, string>): Promise<CliResult>;
}

function nameOf(tool: string): string {
  return `${namespace}/q/sandbox/tool/${tool}`;
}

async function openPlace(): Promise<Place> {
  await using stack = new AsyncDisposableStack();
  const broker = stack.use(await startSmfBroker());
  const semp = stack.use(await startSemp(broker, { credentials: `keeper:${password}` }));
  const peer = stack.use(await Peer.connect(broker.url));
  for (const tool of ["served", "full", "idle"]) {
    broker.createQueue(nameOf(tool), { accessType: "non-exclusive" }, [
      invokeTopic(namespace, tool),
    ]);
  }
  broker.createQueue("test/prune-other/q/sandbox/tool/idle");
  await peer.consume(nameOf("served"));
  await peer.publish(topic(invokeTopic(namespace, "full")), "waits");
  await peer.publish(queue(nameOf("full")), "waits too");
  const owned = stack.move();
  return {
    broker,
    semp,
    queues: () =>
      broker.queues.map(({ name }) => name).filter((name) => name.startsWith(namespace)),
    prune: (args, environment = {}) =>
      runCli(["queues", "prune", "--namespace", namespace, ...args], {
        SOLACE_SEMP_URL: semp.url,
        SOLACE_SEMP_USERNAME: "keeper",
        SOLACE_SEMP_PASSWORD: password,
        ...environment,
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

describe("harness queues prune", () => {
  test("shows what it would remove, and changes nothing", async () => {
    await using place = await openPlace();
    const before = place.queues();
    const result = await place.prune([]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.stdout.trimEnd().split("\n")).toEqual([
      `kept      ${nameOf("full")}: calls wait in it (consumers: 0, messages: 2)`,
      `removable ${nameOf("idle")}: nobody serves it (consumers: 0, messages: 0)`,
      `kept      ${nameOf("served")}: it is served (consumers: 1, messages: 0)`,
    ]);
    expect(result.stderr).toContain("3 queues, 0 removed, 1 would be by --yes");
    expect(place.queues()).toEqual(before);
  });

  test("removes with --yes what nobody serves and holds no call, of this namespace only", async () => {
    await using place = await openPlace();
    const result = await place.prune(["--yes", "--json"]);
    const lines = result.stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual({
      name: nameOf("idle"),
      consumers: 0,
      messages: 0,
      fate: "removed",
      reason: "nobody serves it",
    });
    expect(place.queues()).toEqual([
      nameOf("served"),
      nameOf("full"),
      "test/prune-other/q/sandbox/tool/idle",
    ]);
  });

  test("looks at the tools that it is told, and forces for them only", async () => {
    await using place = await openPlace();
    await place.prune(["--tool", "full", "--tool", "never-was", "--yes"]);
    expect(place.queues()).toContain(nameOf("full"));
    const forced = await place.prune(["--tool", "full", "--yes", "--force"]);
    expect(forced.stdout).toMatch(/^removed .*tool\/full: nobody serves it/);
    expect(place.queues()).not.toContain(nameOf("full"));
    expect(place.queues()).toContain(nameOf("idle"));
    expect(await place.prune(["--yes", "--force"])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("--force needs --tool"),
    });
  });

  test("finds more queues than the broker lists at once", async () => {
    await using place = await openPlace();
    for (let n = 0; n < 250; n++) place.broker.createQueue(nameOf(`tool-${n}`));
    const result = await place.prune(["--yes"]);
    expect(result.stderr).toContain("253 queues, 251 removed");
    expect(place.queues().filter((name) => name.includes("tool-"))).toEqual([]);
  });

  test.each([
    [
      "another password",
      { SOLACE_SEMP_PASSWORD: "wr0ng/p@ss" },
      1,
      /refused GET .* to the user keeper: no such user/,
    ],
    ["nothing there", { SOLACE_SEMP_URL: "http://127.0.0.1:1" }, 1, /cannot be asked: /],
    [
      "a password in the URL",
      { SOLACE_SEMP_URL: `http://a:${password}@h` },
      2,
      /SOLACE_SEMP_URL is not accepted/,
    ],
    ["no password", { SOLACE_SEMP_PASSWORD: "" }, 2, /SOLACE_SEMP_PASSWORD have to say/],
  ] as const)(
    "says what is wrong with %s, and shows no password",
    async (_, environment, exitCode, says) => {
      await using place = await openPlace();
      const result = await place.prune([], environment);
      expect(result).toMatchObject({ exitCode, stderr: expect.stringMatching(says) });
      expect(result.stdout + result.stderr).not.toMatch(/s3cret|wr0ng|p@ss/);
    },
  );

  test("warns of a password that can be read on its way", async () => {
    await using place = await openPlace();
    const result = await place.prune([]);
    expect(result.stderr).toMatch(
      /is not encrypted: the password of keeper can be read on its way/,
    );
  });
});

test("harness smf-broker can be managed too", async () => {
  await using command = new CliProcess(["smf-broker", "--port", "0", "--semp-port", "0"]);
  const [, url = ""] = await command.said(
    "stdout",
    /SEMP listens on (http:\/\/127\.0\.0\.1:\d+)\./,
  );
  const result = await runCli(["queues", "prune", "--namespace", namespace], {
    SOLACE_SEMP_URL: url,
    SOLACE_SEMP_USERNAME: "any",
    SOLACE_SEMP_PASSWORD: "any",
  });
  expect(result).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("0 queues") });
});
