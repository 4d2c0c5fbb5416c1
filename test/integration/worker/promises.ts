/**
 * What calls can rely on when a real broker delivers them more than once, or late: docs/brokers.md,
 * on whole workers.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Broker } from "../../../worker/broker/broker.ts";
import { type Peer, pull } from "../../conformance/broker.ts";
import { breakingAfterAnswer } from "../../support/brokers/changed-broker.ts";
import { patience } from "../../support/patience.ts";
import { PeerWorkers } from "../../support/workers/peer-workers.ts";
import { openCable } from "../../support/brokers/rabbitmq-proxy.ts";

/** How often the queues of these tests hand a call out. */
export const maxDeliveries = 4;

/** A place on a broker that no other test uses. */
export interface BrokerPlace extends AsyncDisposable {
  readonly namespace: string;
  readonly peer: Peer;
  /** Where the broker listens. */
  readonly port: number;
  /**
   * The adapter of a worker that reaches the broker by a port of this host, and makes queues with
   * {@link maxDeliveries}.
   */
  brokerAt(port: number): Broker;
  /** Waits for the next dead letter and takes it: the JSON text of the call. */
  takeDeadLetter(): Promise<string>;
}

const never = new AbortController().signal;
const longMs = 600_000;
const done = { kind: "success", toolResult: { told: "done" } };
const nothingLeft = { requeued: 0, abandoned: 0 };

/** Runs the promises on a broker. */
export function describePromises(name: string, openPlace: () => Promise<BrokerPlace>): void {
  describe(`a call over ${name}`, () => {
    test("that nobody lives to answer is answered POISONED one delivery before the broker's last, is not run, and is a dead letter then", async () => {
      const { place, workers } = await prepare(openPlace);
      const broker = place.brokerAt(place.port);
      for (let deliveryCount = 1; deliveryCount < maxDeliveries - 1; deliveryCount++) {
        await using doomed = await broker.connect(["repeatable"], never);
        if (deliveryCount === 1) await workers.publish("repeatable", "call");
        expect(await pull(doomed).next()).toMatchObject({ deliveryCount, maxDeliveries });
      }
      const { worker } = await workers.startWorkerOn(broker, 1);
      await workers.answered("call");
      expect(await worker.drain(longMs)).toMatchObject(nothingLeft);
      expect(workers.answers.get("call")).toMatchObject([
        { kind: "error", code: "POISONED", message: expect.stringContaining("3 times") },
      ]);
      expect(await place.takeDeadLetter()).toContain('"id":"call"');
      expect(workers.runs.begun).toEqual([]);
    });

    test("that must not run twice goes on while its worker is cut off, and is answered once", async () => {
      const { place, workers } = await prepare(openPlace);
      await using way = new AsyncDisposableStack();
      const cable = way.use(await openCable(place.port));
      const former = await workers.startWorkerOn(place.brokerAt(cable.port), 1);
      await workers.publish("once_only", "call");
      await workers.runs.haveBegun("call");
      const { worker: next } = await workers.startWorkerOn(place.brokerAt(place.port), 1);
      cable.cut();
      workers.runs.finish("call");
      await workers.answered("call");
      expect(await former.worker.drain(longMs)).toMatchObject(nothingLeft);
      // One that has the call again, and waits, gives it back to nobody.
      expect(await next.drain(longMs)).toMatchObject({ abandoned: 0 });
      expect(workers.answers.get("call")).toMatchObject([done]);
      expect(workers.runs.begun).toEqual(["call"]);
    });

    const leavesAnswer = "whose worker stays cut off gets its answer from another, and runs once";
    test(leavesAnswer, { tags: "full" }, async () => {
      const { place, workers } = await prepare(openPlace);
      const cable = await openCable(place.port);
      onTestFinished(() => cable[Symbol.asyncDispose]());
      const patient = { CONNECT_RETRIES: "0" };
      const former = await workers.startWorkerOn(place.brokerAt(cable.port), 1, patient);
      await workers.publish("once_only", "call");
      await workers.runs.haveBegun("call");
      const { worker: next } = await workers.startWorkerOn(place.brokerAt(place.port), 1);
      cable.unplug();
      workers.runs.finish("call");
      await workers.answered("call");
      await vi.waitFor(() => expect(former.said()).toContain("call.answered_elsewhere"), patience);
      cable.plugIn();
      expect(await next.drain(longMs)).toMatchObject(nothingLeft);
      await workers.publish("repeatable", "later");
      await workers.runs.haveBegun("call", "later");
      workers.runs.finish("later");
      await workers.answered("call", "later");
      expect(workers.answers.get("call")).toMatchObject([done]);
      expect(workers.runs.begun).toEqual(["call", "later"]);
    });

    test("whose connection breaks between answer and settlement does not run again", async () => {
      const { place, workers } = await prepare(openPlace);
      const cable = await openCable(place.port);
      onTestFinished(() => cable[Symbol.asyncDispose]());
      const broker = breakingAfterAnswer(place.brokerAt(cable.port), () => cable.cut());
      const { worker, said } = await workers.startWorkerOn(broker, 1);
      await workers.publish("repeatable", "call");
      await workers.runs.haveBegun("call");
      workers.runs.finish("call");
      await vi.waitFor(() => expect(said()).toContain("call.redelivered_"), patience);
      expect(await worker.drain(longMs)).toMatchObject(nothingLeft);
      await workers.answered("call");
      for (const answer of workers.answers.get("call") ?? []) expect(answer).toMatchObject(done);
      expect(workers.runs.begun).toEqual(["call"]);
    });

    test("that is older than its timeout and ten seconds is answered as timed out and not run, and a younger one is run", async () => {
      const { place, workers } = await prepare(openPlace);
      const { worker } = await workers.startWorkerOn(place.brokerAt(place.port), 1);
      const sentAgo = (ageMs: number) => ({ timestamp: Date.now() - ageMs });
      await workers.publish("repeatable", "stale", { timeoutSeconds: 60 }, sentAgo(71_000));
      await workers.publish("repeatable", "late", { timeoutSeconds: 60 }, sentAgo(30_000));
      await workers.runs.haveBegun("late");
      workers.runs.finish("late");
      await workers.answered("stale", "late");
      expect(await worker.drain(longMs)).toMatchObject(nothingLeft);
      expect(Object.fromEntries(workers.answers)).toMatchObject({
        stale: [{ kind: "timed-out" }],
        late: [done],
      });
      expect(workers.runs.begun).toEqual(["late"]);
    });

    test(
      "that its caller cancels is stopped by the worker that has it and answered once, though every worker hears that",
      { tags: "promise-B9" },
      async () => {
        const { place, workers } = await prepare(openPlace);
        const started = [
          await workers.startWorkerOn(place.brokerAt(place.port), 1),
          await workers.startWorkerOn(place.brokerAt(place.port), 1),
        ];
        const more = { args: { ends_at_sigterm: true } };
        const cancelled = { kind: "error", code: "CANCELLED" };
        for (const name of ["first", "second"]) await workers.publish("once_only", name, more);
        await workers.runs.haveBegun("first", "second");
        await workers.cancel("first", "{}", { replyTo: workers.replyTopic("second") });
        await workers.cancel("first", "{}", {});
        await workers.cancel("first", "");
        await workers.cancel("first", "");
        await workers.answered("first");
        await workers.cancel("early", '{"jsonrpc":"2.0","method":"unknown"}');
        await workers.publish("once_only", "early", more);
        await workers.answered("first", "early");
        workers.runs.finish("second");
        await workers.answered("first", "early", "second");
        await workers.cancel("second", "");
        for (const { worker } of started)
          expect(await worker.drain(longMs)).toMatchObject(nothingLeft);
        expect(Object.fromEntries(workers.answers)).toMatchObject({
          first: [cancelled],
          early: [cancelled],
          second: [done],
        });
        expect(workers.runs.begun.toSorted()).toEqual(["first", "second"]);
      },
    );

    const cancelledInDrain = "that its caller cancels while its worker drains is stopped";
    test(cancelledInDrain, { tags: "full" }, async () => {
      const { place, workers } = await prepare(openPlace);
      const { worker } = await workers.startWorkerOn(place.brokerAt(place.port), 1);
      await workers.publish("once_only", "call", { args: { ends_at_sigterm: true } });
      await workers.runs.haveBegun("call");
      const drained = worker.drain(longMs);
      await workers.cancel("call", "");
      expect(await drained).toEqual({ finished: 1, ...nothingLeft });
      await workers.answered("call");
      expect(workers.answers.get("call")).toMatchObject([{ code: "CANCELLED" }]);
    });

    const cancelledAfterCut =
      "that its caller cancels after its worker was cut off for a moment is stopped";
    test(cancelledAfterCut, { tags: "full" }, async () => {
      const { place, workers } = await prepare(openPlace);
      await using way = new AsyncDisposableStack();
      const cable = way.use(await openCable(place.port));
      const { said } = await workers.startWorkerOn(place.brokerAt(cable.port), 1);
      await workers.publish("once_only", "call", { args: { ends_at_sigterm: true } });
      await workers.runs.haveBegun("call");
      cable.cut();
      await vi.waitFor(() => expect(said()).toContain("call.redelivered_"), patience);
      await workers.cancel("call", "");
      await workers.answered("call");
      expect(workers.answers.get("call")).toMatchObject([{ code: "CANCELLED" }]);
      expect(workers.runs.begun).toEqual(["call"]);
    });

    test("whose tool another group has, too, is reported by both groups' workers", async () => {
      const { place, workers } = await prepare(openPlace);
      const { said } = await workers.startWorkerOn(place.brokerAt(place.port), 1);
      await workers.startWorkerOn(place.brokerAt(place.port), 1, { WORKER_GROUP: "other" });
      await vi.waitFor(() => expect(said()).toContain("group.conflict"), patience);
      expect(said()).toContain(`group \\"other\\" has tools of this group`);
    });
  });
}

/** A place for one test, which ends with it. */
async function prepare(
  openPlace: () => Promise<BrokerPlace>,
): Promise<{ readonly place: BrokerPlace; readonly workers: PeerWorkers }> {
  const place = await openPlace();
  onTestFinished(() => place[Symbol.asyncDispose]());
  return { place, workers: await PeerWorkers.prepare(place.namespace, place.peer) };
}
