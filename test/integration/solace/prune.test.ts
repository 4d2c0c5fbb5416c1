/**
 * `harness queues prune`: queues that nobody serves, found and removed by the management interface of the broker.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { type SmfBroker, startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { startSemp } from "../../../harness/fakes/solace/semp.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { patience } from "../../support/patience.ts";
import { CliProcess, type CliResult, runCli } from "../harness/cli-process.ts";
import { queue, topic } from "./messages.ts";
import { Peer } from "./peer.ts";
import { Pruning } from "./pruning.ts";

const namespace = "test/prune";
const password = "s3cret/p@ss";

/** A broker that can be managed, with queues in every kind of use. */
interface Place extends AsyncDisposable {
  readonly broker: SmfBroker;
  /** A client that serves the tool `served`. */
  readonly peer: Peer;
  /** Names of the queues of the namespace. */
  queues(): readonly string[];
  prune(args: readonly string[], environment?: Record<string, string>): Promise<CliResult>;
  /** The same, to be waited for by the caller, who owns it. */
  start(args: readonly string[]): CliProcess;
  /** The same with `--yes`, in this process; does something between the two looks. Resolves with the lines about queues. */
  pruneAround(between: () => void | Promise<void>): Promise<readonly string[]>;
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
    broker.createQueue(nameOf(tool), { accessType: "non-exclusive", respectsTimeToLive: true }, [
      invokeTopic(namespace, tool),
    ]);
  }
  broker.createQueue("test/prune-other/q/sandbox/tool/idle");
  await peer.consume(nameOf("served"));
  await peer.publish(topic(invokeTopic(namespace, "full")), "waits");
  await peer.publish(queue(nameOf("full")), "waits too");
  const owned = stack.move();
  const command = ["queues", "prune", "--namespace", namespace];
  const access = {
    SOLACE_SEMP_URL: semp.url,
    SOLACE_SEMP_USERNAME: "keeper",
    SOLACE_SEMP_PASSWORD: password,
  };
  return {
    broker,
    peer,
    queues: () =>
      broker.queues.map(({ name }) => name).filter((name) => name.startsWith(namespace)),
    prune: (args, environment = {}) => runCli([...command, ...args], { ...access, ...environment }),
    start: (args) => new CliProcess([...command, ...args], access),
    async pruneAround(between) {
      const pruning = new Pruning([...command.slice(2), "--yes"], access);
      // No call has run for a while.
      await pruning.wake();
      await vi.waitFor(() => expect(pruning.slept).toEqual([10_000, 50_000]), patience);
      await between();
      const { exitCode, lines } = await pruning.end();
      expect(exitCode).toBe(0);
      return lines;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A management that answers every request with what is given for its path. The caller owns it. */
async function startReplies(
  replyTo: (path: string) => object,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(({ url = "" }, response) => {
    response.end(JSON.stringify(replyTo(url)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

describe("harness queues prune", () => {
  test("removes what was used neither at two looks nor between them", async () => {
    await using place = await openPlace();
    const lines = await place.pruneAround(() => {
      expect(place.queues()).toContain(nameOf("idle"));
    });
    expect(lines).toEqual([
      `kept      ${nameOf("full")}: calls wait in it (consumers: 0, messages: 2)`,
      `removed   ${nameOf("idle")}: nobody serves it (consumers: 0, messages: 0)`,
      `kept      ${nameOf("served")}: it is served (consumers: 1, messages: 0)`,
    ]);
    expect(place.queues()).not.toContain(nameOf("idle"));
  });

  test.each<[string, RegExp, (place: Place) => Promise<void>]>([
    [
      "a worker that is there",
      /^kept .*: it is served \(consumers: 1, messages: 0\)$/,
      async ({ peer }) => void (await peer.consume(nameOf("idle"))),
    ],
    [
      "a worker that came and went",
      /^kept .*: somebody asked to serve it meanwhile /,
      async ({ peer }) => (await peer.consume(nameOf("idle"))).disconnect(),
    ],
    [
      "a worker that was refused",
      /^kept .*: somebody asked to serve it meanwhile /,
      async ({ broker, peer }) => {
        broker.faults.bind = () => ({ code: 503, text: "Queue Shutdown" });
        await expect(peer.consume(nameOf("idle"))).rejects.toThrow();
      },
    ],
    [
      "a call that waits",
      /^kept .*: calls wait in it \(consumers: 0, messages: 1\)$/,
      ({ peer }) => peer.publish(queue(nameOf("idle")), "waits"),
    ],
    [
      "a call that nobody took in its time",
      /^kept .*: calls came meanwhile \(consumers: 0, messages: 0\)$/,
      async ({ broker, peer }) => {
        await peer.publish(queue(nameOf("idle")), "expires", { ttlMs: 1 });
        await vi.waitFor(() => expect(broker.queue(nameOf("idle"))?.depth).toBe(0), patience);
      },
    ],
  ])("keeps a queue for %s at the second look", async (_, says, use) => {
    await using place = await openPlace();
    const lines = await place.pruneAround(() => use(place));
    expect(lines.find((line) => line.includes(nameOf("idle")))).toMatch(says);
    expect(place.queues()).toContain(nameOf("idle"));
  });

  test("ends at a signal while it waits, and has removed nothing", { tags: "full" }, async () => {
    await using place = await openPlace();
    const before = place.queues();
    await using command = place.start(["--yes", "--after", "600"]);
    await command.said("stderr", /not used: 1; looking again in 600 seconds/);
    command.child.kill("SIGINT");
    expect(await command.finished).toMatchObject({ exitCode: 130, stdout: "" });
    expect(place.queues()).toEqual(before);
  });

  test.each([
    ["a queue", { bindRequestCount: 0 }, { txUnackedMsgCount: 0 }, "its use is unknown"],
    [
      "the calls of all",
      { spooledMsgCount: 0, bindRequestCount: 0 },
      {},
      "calls run, and a full worker may have let it go",
    ],
  ])("keeps a queue where the broker tells too little of %s", async (_, one, all, reason) => {
    await using place = await openPlace();
    const queueName = nameOf("idle");
    const collections = { msgs: { count: 0 }, txFlows: { count: 0 } };
    await using semp = await startReplies((path) =>
      path.includes("?")
        ? { data: [{ queueName, ...all }], meta: {} }
        : { collections, data: { queueName, ...one } },
    );
    const result = await place.prune(["--yes", "--after", "1"], { SOLACE_SEMP_URL: semp.url });
    expect(result.stdout).toBe(`kept      ${queueName}: ${reason} (consumers: 0, messages: 0)\n`);
  });

  test("says nothing of a queue that somebody else has removed meanwhile", async () => {
    await using place = await openPlace();
    const lines = await place.pruneAround(() => place.broker.deleteQueue(nameOf("idle")));
    expect(lines.filter((line) => line.includes(nameOf("idle")))).toEqual([]);
  });

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
    const result = await place.prune(["--yes", "--after", "1", "--json"]);
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

  test("finds more queues than the broker lists at once", { tags: "full" }, async () => {
    await using place = await openPlace();
    for (let n = 0; n < 250; n++) place.broker.createQueue(nameOf(`tool-${n}`));
    const result = await place.prune(["--yes", "--after", "1"]);
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
    [
      "an unreadable password",
      { SOLACE_SEMP_PASSWORD: "", SOLACE_SEMP_PASSWORD_FILE: "/nowhere/secret" },
      2,
      /SOLACE_SEMP_PASSWORD_FILE: "\/nowhere\/secret" cannot be read: ENOENT/,
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

test("harness smf-broker can be managed too", { tags: "full" }, async () => {
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
