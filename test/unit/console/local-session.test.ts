import { expect, test } from "vitest";
import type { ConsumedSession, Delivery, Settlement } from "../../../worker/broker/broker.ts";
import { LocalCalls } from "../../../worker/console/calls/local-session.ts";

/** A session whose deliveries the test brings. */
function start() {
  const published: string[] = [];
  const pulls: PromiseWithResolvers<IteratorResult<Delivery>>[] = [];
  const next = (): Promise<IteratorResult<Delivery>> => {
    const pull = Promise.withResolvers<IteratorResult<Delivery>>();
    pulls.push(pull);
    return pull.promise;
  };
  const session: ConsumedSession = {
    redelivers: false,
    closed: Promise.withResolvers<never>().promise,
    deliveries: { [Symbol.asyncIterator]: () => ({ next }) },
    publish: async ({ topic }) => {
      published.push(topic);
      return "confirmed";
    },
    subscribe: () => Promise.reject(new Error("not here")),
    pause: async () => pulls.at(-1)?.resolve({ done: true, value: undefined }),
  };
  const local = new LocalCalls();
  const joined = local.joined(session);
  const arrivals = joined.deliveries[Symbol.asyncIterator]();
  const answers: string[] = [];
  const settled: Settlement[] = [];
  const deliver = (replyTo: string): boolean =>
    local.deliver({
      ...{ topic: "ns/invoke/tool", replyTo, payload: Buffer.from(replyTo) },
      onAnswer: (payload) => void answers.push(Buffer.from(payload).toString()),
      onSettled: (outcome) => void settled.push(outcome),
    });
  return { joined, arrivals, pulls, published, answers, settled, deliver };
}

const { signal } = new AbortController();

async function textOf(arriving: Promise<IteratorResult<Delivery>>): Promise<string | undefined> {
  const { done, value } = await arriving;
  return done === true ? undefined : Buffer.from(value.payload).toString();
}

test("calls come among the session's deliveries, none of which is lost", async () => {
  const { arrivals, pulls, deliver } = start();
  const first = textOf(arrivals.next());
  deliver("local 1");
  expect(await first).toBe("local 1");
  pulls[0]?.resolve({ value: { payload: Buffer.from("remote 1") } as unknown as Delivery });
  expect(await textOf(arrivals.next())).toBe("remote 1");
  deliver("local 2");
  expect(await textOf(arrivals.next())).toBe("local 2");
  const last = textOf(arrivals.next());
  pulls[1]?.resolve({ value: { payload: Buffer.from("remote 2") } as unknown as Delivery });
  expect(await last).toBe("remote 2");
  expect(pulls.length).toBe(2);
});

test("an answer goes to its call until that is settled, all others to the broker", async () => {
  const { arrivals, joined, published, answers, settled, deliver } = start();
  deliver("reply/1");
  const { value } = (await arrivals.next()) as { value: Delivery };
  await joined.publish({ topic: "reply/1", payload: Buffer.from("mine") }, signal);
  await joined.publish({ topic: "reply/2", payload: Buffer.from("another's") }, signal);
  await value.settle("accepted");
  await value.settle("failed");
  await joined.publish({ topic: "reply/1", payload: Buffer.from("late") }, signal);
  expect({ answers, settled, published }).toEqual({
    answers: ["mine"],
    settled: ["accepted"],
    published: ["reply/2", "reply/1"],
  });
});

test("after a pause no call is taken, and the deliveries end", async () => {
  const { arrivals, joined, deliver } = start();
  deliver("local 1");
  expect(await textOf(arrivals.next())).toBe("local 1");
  const end = textOf(arrivals.next());
  await joined.pause();
  expect(deliver("local 2")).toBe(false);
  expect(await end).toBe(undefined);
});

test("the hundred and first open call is refused, until one is settled", async () => {
  const { arrivals, deliver } = start();
  for (let count = 0; count < 100; count++) expect(deliver(`local ${count}`)).toBe(true);
  const { value } = (await arrivals.next()) as { value: Delivery };
  expect(deliver("one more")).toBe(false);
  await value.settle("accepted");
  expect(deliver("one more")).toBe(true);
});

test("a failed session fails its deliveries, and takes no call any more", async () => {
  const { arrivals, pulls, deliver } = start();
  const arriving = arrivals.next();
  pulls[0]?.reject(new Error("lost"));
  await expect(arriving).rejects.toThrow("lost");
  expect(deliver("local 1")).toBe(false);
});
