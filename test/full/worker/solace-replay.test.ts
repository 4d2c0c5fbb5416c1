/**
 * Calls that an administrator has Solace replay, on whole workers.
 *
 * @module-tag full
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { defaultAddress, namespace, openPlace } from "../../integration/solace-adapter/place.ts";
import { patience } from "../../support/patience.ts";
import { PeerWorkers } from "../../support/workers/peer-workers.ts";

const longMs = 600_000;
const done = { kind: "success", toolResult: { told: "done" } };

test("a replayed call is answered the same again by the worker that answered it, and no other runs it", async () => {
  const place = await openPlace({}, { keepsReplayLog: true });
  onTestFinished(() => place[Symbol.asyncDispose]());
  const workers = await PeerWorkers.prepare(namespace, place.peer);
  const replay = (): void => place.server.replay(defaultAddress);
  const sent = { timestamp: Date.now() };
  const former = await workers.startWorkerOn(place.broker, 2);
  await workers.publish("repeatable", "one", {}, sent);
  await workers.publish("once_only", "other", {}, sent);
  await workers.runs.haveBegun("one", "other");
  for (const name of ["one", "other"]) workers.runs.finish(name);
  await workers.answered("one", "other");
  replay();
  // After its answer, or while the worker takes note of that.
  const again = /call\.redelivered_/g;
  await vi.waitFor(() => expect(former.said().match(again)).toHaveLength(2), patience);
  await former.worker.drain(longMs);
  const next = await workers.startWorkerOn(place.broker, 2);
  replay();
  await vi.waitFor(
    () => expect(next.said().match(/call\.answered_elsewhere/g)).toHaveLength(2),
    patience,
  );
  await next.worker.drain(0);
  for (const name of ["one", "other"]) {
    for (const answer of workers.answers.get(name) ?? []) expect(answer).toMatchObject(done);
  }
  expect(workers.runs.begun.toSorted()).toEqual(["one", "other"]);
});
