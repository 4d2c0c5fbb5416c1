/**
 * `harness queues prune` while calls run: a worker that they fill has let its other queues go, which look unused then.
 */
import { describe, expect, test, vi } from "vitest";
import { type SmfBroker, startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { startSemp } from "../../../harness/fakes/solace/semp.ts";
import type { Delivery } from "../../../worker/broker/broker.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { pull } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { solaceBroker } from "../../support/solace-options.ts";
import { queue, topic } from "./messages.ts";
import { Peer } from "./peer.ts";
import { Pruning } from "./pruning.ts";

const namespace = "test/prune-busy";
const never = new AbortController().signal;

/** Nobody serves the tool `old`; a worker that runs one call at a time serves `slow` and `quick`. */
interface Place extends AsyncDisposable {
  readonly broker: SmfBroker;
  readonly peer: Peer;
  /** Calls `slow`, and waits until the worker runs that. */
  call(): Promise<Delivery>;
  /** The same, and waits until the worker has let go of the queue of `quick`. */
  fill(): Promise<Delivery>;
  /** Settles it, and waits until the broker knows. */
  settle(delivery: Delivery): Promise<void>;
  /** One whose first look was at a full worker, which is free again since. */
  pruneAcrossACall(): Promise<Pruning>;
  has(tool: string): boolean;
  prune(...args: string[]): Pruning;
}

function nameOf(tool: string): string {
  return `${namespace}/q/sandbox/tool/${tool}`;
}

async function openPlace(): Promise<Place> {
  await using stack = new AsyncDisposableStack();
  const broker = stack.use(await startSmfBroker());
  const semp = stack.use(await startSemp(broker));
  const peer = stack.use(await Peer.connect(broker.url));
  broker.createQueue(nameOf("old"), { accessType: "non-exclusive" }, [
    invokeTopic(namespace, "old"),
  ]);
  const worker = solaceBroker({
    host: broker.url,
    namespace,
    maxUnsettled: 1,
    isRepeatable: () => true,
  });
  const session = stack.use(await worker.connect(["slow", "quick"], never));
  const deliveries = pull(session);
  const access = {
    SOLACE_SEMP_URL: semp.url,
    SOLACE_SEMP_USERNAME: "any",
    SOLACE_SEMP_PASSWORD: "any",
  };
  const call = async (): Promise<Delivery> => {
    await peer.publish(topic(invokeTopic(namespace, "slow")), "{}");
    return deliveries.next();
  };
  const untilServed = (times: number): Promise<void> =>
    vi.waitFor(
      () => expect(broker.queue(nameOf("quick"))?.consumers).toHaveLength(times),
      patience,
    );
  const fill = async (): Promise<Delivery> => {
    const delivery = await call();
    await untilServed(0);
    return delivery;
  };
  const settle = async (delivery: Delivery): Promise<void> => {
    await delivery.settle("accepted");
    await vi.waitFor(() => expect(broker.queue(nameOf("slow"))?.depth).toBe(0), patience);
  };
  const prune = (...args: string[]): Pruning =>
    new Pruning(["--namespace", namespace, ...args], access);
  const owned = stack.move();
  return {
    broker,
    peer,
    call,
    fill,
    settle,
    async pruneAcrossACall() {
      const delivery = await fill();
      const pruning = prune("--yes");
      await pruning.asleep();
      await settle(delivery);
      await untilServed(1);
      return pruning;
    },
    has: (tool) => broker.queue(nameOf(tool)) !== undefined,
    prune,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

describe("harness queues prune, while calls run,", () => {
  test("keeps a queue that a full worker has let go", async () => {
    await using place = await openPlace();
    await place.fill();
    const pruning = place.prune("--yes");
    const { exitCode, lines, told } = await pruning.end();
    const reason = "calls run, and a full worker may have let it go (consumers: 0, messages: 0)";
    expect(lines).toEqual([
      `kept      ${nameOf("old")}: ${reason}`,
      `kept      ${nameOf("quick")}: ${reason}`,
      `kept      ${nameOf("slow")}: it is served (consumers: 1, messages: 1)`,
    ]);
    expect(told).toContain(`calls run: ${nameOf("slow")} (1); waiting for 10 seconds without any`);
    expect(told).toContain(`nothing is removed, since calls run: ${nameOf("slow")} (1)\n`);
    expect(pruning.slept).toEqual(Array<number>(6).fill(10_000));
    expect(exitCode).toBe(124);
    expect(place.has("quick")).toBe(true);
  });

  test("keeps it when they have ended, and removes what nobody serves", async () => {
    await using place = await openPlace();
    const pruning = await place.pruneAcrossACall();
    const { exitCode, lines } = await pruning.end();
    expect(exitCode).toBe(0);
    expect(lines[0]).toMatch(/^removed .*tool\/old: nobody serves it/);
    expect(lines[1]).toMatch(/^kept .*tool\/quick: it is served \(consumers: 1,/);
    expect(pruning.slept).toEqual([10_000, 10_000, 40_000]);
    expect([place.has("old"), place.has("quick")]).toEqual([false, true]);
  });

  test("keeps it when they have ended and others fill the worker again", async () => {
    await using place = await openPlace();
    const pruning = await place.pruneAcrossACall();
    await pruning.wake();
    await pruning.wake();
    await pruning.asleep();
    await place.fill();
    const { lines } = await pruning.end();
    expect(lines[0]).toMatch(/^removed .*tool\/old: nobody serves it/);
    expect(lines[1]).toMatch(
      /^kept .*tool\/quick: somebody asked to serve it meanwhile \(consumers: 0,/,
    );
  });

  test("keeps all where calls came and ended whenever it did not look", async () => {
    await using place = await openPlace();
    const pruning = place.prune("--yes");
    for (let span = 0; span < 6; span++) {
      await pruning.asleep();
      await place.settle(await place.call());
      await pruning.wake();
    }
    const { exitCode, told } = await pruning.end();
    expect(exitCode).toBe(124);
    expect(told).toContain(`nothing is removed, since calls run: ${nameOf("slow")} (ended)\n`);
    expect(place.has("old")).toBe(true);
  });

  test(
    "keeps all where calls that had waited ended whenever it did not look",
    { tags: "full" },
    async () => {
      await using place = await openPlace();
      const waits = nameOf("waits");
      place.broker.createQueue(waits, { accessType: "non-exclusive" });
      await place.peer.publish(queue(waits), "{}");
      const pruning = place.prune("--yes", "--after", "10");
      await pruning.asleep();
      await place.peer.consume(waits);
      await vi.waitFor(() => expect(place.broker.queue(waits)?.depth).toBe(0), patience);
      const { exitCode, told } = await pruning.end();
      expect(exitCode).toBe(124);
      expect(told).toContain(`nothing is removed, since calls run: ${waits} (ended)\n`);
      expect(place.has("old")).toBe(true);
    },
  );

  test("shows without --yes that it would remove nothing", { tags: "full" }, async () => {
    await using place = await openPlace();
    await place.fill();
    const { exitCode, lines, told } = await place.prune().end();
    expect(lines[0]).toMatch(/^kept .*tool\/old: calls run, and a full worker/);
    expect(told).toContain(`nothing would be removed, since calls run: ${nameOf("slow")} (1)\n`);
    expect(exitCode).toBe(0);
  });

  test("does not mind them with --while-calls-run, for the tools that it is told", async () => {
    await using place = await openPlace();
    await place.fill();
    const args = ["--tool", "old", "--while-calls-run"];
    const shown = await place.prune(...args).end();
    expect(shown.lines).toEqual([expect.stringMatching(/^removable .*tool\/old: /)]);
    const pruning = place.prune(...args, "--yes");
    const { exitCode, lines } = await pruning.end();
    expect(lines).toEqual([expect.stringMatching(/^removed .*tool\/old: nobody serves it/)]);
    expect(pruning.slept).toEqual([60_000]);
    expect(exitCode).toBe(0);
    expect([place.has("old"), place.has("quick")]).toEqual([false, true]);
    expect(await place.prune("--while-calls-run", "--yes").end()).toMatchObject({
      exitCode: 2,
      told: expect.stringContaining("--while-calls-run needs --tool"),
    });
  });

  test("does not mind those of other namespaces", async () => {
    await using place = await openPlace();
    const other = "test/prune/q/sandbox/tool/slow";
    place.broker.createQueue(other, { accessType: "non-exclusive" });
    await place.peer.consume(other, () => undefined);
    await place.peer.publish(queue(other), "{}");
    await vi.waitFor(() => expect(place.broker.queue(other)?.unsettled).toBe(1), patience);
    const { exitCode } = await place.prune("--yes").end();
    expect(exitCode).toBe(0);
    expect(place.has("old")).toBe(false);
  });

  test(
    "finds them on every page of the broker's list, and names ten",
    { tags: "full" },
    async () => {
      await using place = await openPlace();
      const names = Array.from({ length: 120 }, (_, n) => nameOf(`many-${1000 + n}`));
      for (const name of names) place.broker.createQueue(name, { accessType: "non-exclusive" });
      for (const name of [...names.slice(0, 9), ...names.slice(-3)]) {
        await place.peer.consume(name, () => undefined);
        await place.peer.publish(queue(name), "{}");
        await vi.waitFor(() => expect(place.broker.queue(name)?.unsettled).toBe(1), patience);
      }
      const { told } = await place.prune("--tool", "old").end();
      expect(told).toContain(`, ${names[8]} (1), ${names[117]} (1) and 2 more\n`);
    },
  );
});
