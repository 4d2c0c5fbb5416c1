/**
 * What workers that share a store know of each other's runs.
 */
import { mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FileMarks } from "../../../../worker/artifacts/filesystem/marks.ts";
import type { Mark } from "../../../../worker/artifacts/marks.ts";
import { StoreError } from "../../../../worker/artifacts/store.ts";
import type { Delivery } from "../../../../worker/broker/broker.ts";
import { maxKeptAnswerBytes } from "../../../../worker/invocation/claims/call-marks.ts";
import { OvertakenError } from "../../../../worker/invocation/answers.ts";
import { NotStartedError } from "../../../../worker/invocation/claims/claims.ts";
import { deduplicationKey } from "../../../../worker/invocation/claims/ledger.ts";
import {
  goneMs,
  pollMs,
  quietEnoughMs,
  settlingMs,
  touchMs,
  unpublishedMs,
} from "../../../../worker/invocation/claims/shared-claim.ts";
import { SharedClaims, stallMs } from "../../../../worker/invocation/claims/shared-claims.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";
import { HandClock } from "../../broker/hand-clock.ts";

const patience = { timeout: 10_000, interval: 1 };
const never = new AbortController().signal;
const reply = Buffer.from('{"answer":1}');
const once = false;
const repeatable = true;

/** Marks in files whose ages are by the hand clock. */
class HandMarks extends FileMarks {
  readonly #clock: HandClock;
  readonly #touched: Map<string, number>;

  constructor(base: string, clock: HandClock, touched: Map<string, number>) {
    super(base);
    this.#clock = clock;
    this.#touched = touched;
  }

  override async create(...given: Parameters<FileMarks["create"]>): Promise<boolean> {
    const isNew = await super.create(...given);
    if (isNew) this.#touched.set(given[0], this.#clock.monotonicMs());
    return isNew;
  }

  override async touch(...given: Parameters<FileMarks["touch"]>): Promise<void> {
    await super.touch(...given);
    this.#touched.set(given[0], this.#clock.monotonicMs());
  }

  override async read(...given: Parameters<FileMarks["read"]>): Promise<Mark | undefined> {
    const mark = await super.read(...given);
    const touchedMs = this.#touched.get(given[0]) ?? 0;
    const ageMs = this.#clock.monotonicMs() - touchedMs;
    return mark && { ...mark, stamp: String(touchedMs), ageMs };
  }
}

/** Workers that share a directory, and a clock. */
async function newGroup() {
  const base = await mkdtemp(join(tmpdir(), "str-claims-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const clock = new HandClock();
  const touched = new Map<string, number>();
  const logged: string[] = [];
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => (logged.push(chunk.toString()), done()),
  });
  const newWorker = (mayReplay = false): SharedClaims => {
    const log = createLogger("debug", output);
    const claims = new SharedClaims({
      marks: new HandMarks(base, clock, touched),
      mayReplay,
      clock,
      log,
      refreshMs: 2 ** 31 - 1,
    });
    onTestFinished(() => claims[Symbol.asyncDispose]());
    return claims;
  };
  const [one, other] = [newWorker(), newWorker()];
  /** Lets time pass for what sleeps, until the promise settles. */
  const passUntil = async <T>(promise: Promise<T>): Promise<number> => {
    const startMs = clock.monotonicMs();
    let isSettled = false;
    const settled = promise.then(
      () => (isSettled = true),
      () => (isSettled = true),
    );
    while (!isSettled) {
      await vi.waitFor(() => expect(isSettled || clock.sleeping > 0).toBe(true), patience);
      if (!isSettled) clock.advance(pollMs / 2);
    }
    await settled;
    return clock.monotonicMs() - startMs;
  };
  const names = async (): Promise<readonly string[]> =>
    (await readdir(base, { recursive: true })).filter((name) => name.includes("."));
  const files = async () => (await names()).filter((name) => /\.(?:\d+|answered)$/.test(name));
  return { base, clock, logged, one, other, newWorker, passUntil, files };
}

const first: Delivery = {
  topic: "test/tool",
  payload: Buffer.from("{}"),
  redelivered: false,
  deliveryCount: 1,
  maxDeliveries: 50,
  properties: {},
  settle: () => Promise.resolve(),
};
const again: Delivery = { ...first, redelivered: true, deliveryCount: 2 };
const key = deduplicationKey(first, "reply");
const alive = { isLost: () => false, cameAgain: () => false };
/** The deliveries of a call whose connection is lost while it runs. */
const lostAfterBegin = () => {
  let asked = 0;
  return { ...alive, isLost: () => asked++ > 0 };
};
const lost = { isLost: () => true, cameAgain: () => false };

describe("a repeatable call that starts tools that must not run twice", () => {
  test("leaves one mark, by which the next worker knows", { tags: "promise-B5" }, async () => {
    const { one, other, files, passUntil } = await newGroup();
    using claim = one.open(key, first, alive);
    await claim.begin(repeatable, never);
    await Promise.all([claim.keep(), claim.keep()]);
    await claim.keep();
    expect(await files()).toHaveLength(1);
    claim[Symbol.dispose]();
    using next = other.open(key, again, alive);
    const history = next.history(never, false);
    await passUntil(history);
    expect(await history).toMatchObject({ kind: "open", mayHaveStarted: true });
  });

  test("starts none of them while another worker may run it", async () => {
    const { one, other } = await newGroup();
    using claim = one.open(key, first, alive);
    await claim.begin(repeatable, never);
    using next = other.open(key, first, alive);
    await next.begin(once, never);
    await expect(claim.keep()).rejects.toThrow(NotStartedError);
  });
});

describe("the first delivery of a call", () => {
  test("has no history, and leaves no mark when it is repeatable", async () => {
    const { one, files } = await newGroup();
    using claim = one.open(key, first, alive);
    expect(await claim.history(never, false)).toEqual({
      kind: "open",
      runs: 0,
      mayHaveStarted: false,
    });
    await claim.begin(repeatable, never);
    await claim.answered(reply);
    expect(await files()).toEqual([]);
  });

  test(
    "begins in one of many workers when it must not run twice",
    { tags: "promise-B5" },
    async () => {
      const { newWorker } = await newGroup();
      const begun = await Promise.allSettled(
        Array.from({ length: 20 }, async () => {
          const claim = newWorker().open(key, first, alive);
          await claim.begin(once, never);
        }),
      );
      expect(begun.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    },
  );

  test("does not begin when the broker has it again, and is not taken then", async () => {
    const { one, files } = await newGroup();
    for (const isRepeatable of [once, repeatable]) {
      using claim = one.open(key, first, lost);
      await expect(claim.begin(isRepeatable, never)).rejects.toThrow(NotStartedError);
      expect(claim.isSuperseded).toBe(false);
    }
    expect(await files()).toEqual([]);
  });
});

describe("on a broker that replays, a repeatable call", () => {
  test("is noted when it is answered, and does not run again in any worker", async () => {
    const { newWorker, passUntil } = await newGroup();
    using claim = newWorker(true).open(key, first, alive);
    await claim.begin(repeatable, never);
    await claim.answered(reply);
    const history = newWorker(true).open(key, again, alive).history(never, false);
    await passUntil(history);
    expect(await history).toEqual({ kind: "answered", answer: undefined });
  });

  test("runs when its sender sent it again", async () => {
    const { newWorker, passUntil } = await newGroup();
    using claim = newWorker(true).open(key, first, alive);
    await claim.begin(repeatable, never);
    await claim.answered(reply);
    const resent = { ...again, properties: { resent: "true" } };
    const history = newWorker(true).open(key, resent, alive).history(never, false);
    await passUntil(history);
    expect(await history).toEqual({ kind: "open", runs: 0, mayHaveStarted: false });
  });
});

describe("the same request in two workers", () => {
  test("runs in one, and the other gets its answer", async () => {
    const { one, other, passUntil } = await newGroup();
    using running = one.open(key, first, alive);
    await running.begin(once, never);
    using waiting = other.open(key, first, alive);
    await expect(waiting.begin(once, never)).rejects.toThrow(NotStartedError);
    expect(waiting.isSuperseded).toBe(true);
    const history = waiting.history(never, false);
    await running.answered(reply);
    await passUntil(history);
    expect(await history).toEqual({ kind: "answered", answer: reply });
  });

  test("has no answer where that was too large to keep", async () => {
    const { one, other, passUntil } = await newGroup();
    using running = one.open(key, first, alive);
    await running.begin(once, never);
    await running.answered(Buffer.alloc(maxKeptAnswerBytes + 1));
    const history = other.open(key, again, alive).history(never, false);
    await passUntil(history);
    expect(await history).toEqual({ kind: "answered", answer: undefined });
  });
});

describe("a call that comes again", () => {
  test("is open when no worker began it, after a moment", async () => {
    const { one, passUntil } = await newGroup();
    const history = one.open(key, again, alive).history(never, false);
    const waitedMs = await passUntil(history);
    expect(await history).toEqual({ kind: "open", runs: 0, mayHaveStarted: false });
    expect(waitedMs).toBeGreaterThanOrEqual(settlingMs);
    expect(waitedMs).toBeLessThanOrEqual(2 * settlingMs + pollMs);
  });

  test("so does one that its sender sent again", async () => {
    const { one, clock, passUntil } = await newGroup();
    const history = one.open(key, { ...first, properties: { resent: "true" } }, alive);
    await passUntil(history.history(never, false));
    expect(clock.slept.length).toBeGreaterThan(0);
  });

  const waitsForItsWorker = async (isRepeatable: boolean): Promise<void> => {
    const { one, other, clock, files } = await newGroup();
    let isLost = false;
    using running = one.open(key, first, { ...alive, isLost: () => isLost });
    await running.begin(isRepeatable, never);
    isLost = true;
    one.refresh();
    await vi.waitFor(async () => expect(await files()).toHaveLength(1), patience);
    using waiting = other.open(key, again, alive);
    let found: unknown;
    const history = waiting.history(never, false).then((value) => (found = value));
    for (let waitedMs = 0; waitedMs < 4 * goneMs; waitedMs += pollMs) {
      await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
      if (waitedMs % touchMs === 0) await running.refresh(clock.monotonicMs());
      clock.advance(pollMs);
    }
    expect(found).toBeUndefined();
    await running.answered(reply);
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(pollMs);
    await history;
    expect(found).toEqual({ kind: "answered", answer: reply });
  };
  const title = "waits as long as its former worker lives, when it is repeatable: %s";
  test.for([once])(title, waitsForItsWorker);
  test.for([repeatable])(title, { tags: "full" }, waitsForItsWorker);

  test("counts the runs of workers that are gone", { tags: "promise-B6" }, async () => {
    const { newWorker, passUntil } = await newGroup();
    for (let runs = 0; runs < 3; runs++) {
      const worker = newWorker();
      const claim = worker.open(key, again, alive);
      const history = claim.history(never, false);
      const waitedMs = await passUntil(history);
      expect(await history).toEqual({ kind: "open", runs, mayHaveStarted: runs > 0 });
      if (runs > 0) expect(waitedMs).toBeGreaterThanOrEqual(goneMs - pollMs);
      await passUntil(claim.begin(repeatable, never));
      await worker[Symbol.asyncDispose]();
    }
  });

  test("does not count a run that its worker gave back", async () => {
    const { one, other, passUntil } = await newGroup();
    using claim = one.open(key, again, alive);
    await passUntil(claim.history(never, false));
    await passUntil(claim.begin(repeatable, never));
    await claim.release();
    const history = other.open(key, again, alive).history(never, false);
    await passUntil(history);
    expect(await history).toMatchObject({ runs: 0 });
  });

  test("is no longer waited for when the broker has it again, or the worker stops", async () => {
    const { one, other, passUntil } = await newGroup();
    using running = one.open(key, first, alive);
    await running.begin(once, never);
    let isLost = false;
    const history = other
      .open(key, again, { ...alive, isLost: () => isLost })
      .history(never, false);
    isLost = true;
    await passUntil(history);
    await expect(history).rejects.toThrow(NotStartedError);
    const stop = new AbortController();
    const stopped = other.open(key, again, alive).history(stop.signal, false);
    const reason = new Error("stop");
    stop.abort(reason);
    await expect(stopped).rejects.toBe(reason);
  });
});

test("a run whose worker is long gone is known to be so after some looks", async () => {
  const { clock, one, newWorker, passUntil } = await newGroup();
  const dead = newWorker();
  await dead.open(key, first, alive).begin(once, never);
  await dead[Symbol.asyncDispose]();
  clock.advance(goneMs);
  const waitedMs = await passUntil(one.open(key, again, alive).history(never, false));
  expect(waitedMs).toBeGreaterThanOrEqual(quietEnoughMs);
  expect(waitedMs).toBeLessThan(goneMs);
});

test("a call that came again while it waited for a slot is looked up before it begins", async () => {
  const { one, files } = await newGroup();
  using claim = one.open(key, first, { isLost: () => false, cameAgain: () => true });
  await expect(claim.begin(repeatable, never)).rejects.toThrow(NotStartedError);
  expect(claim.isSuperseded).toBe(true);
  expect(await files()).toEqual([]);
});

test("a call whose worker stops right before it begins leaves no mark", async () => {
  const { one, files } = await newGroup();
  using claim = one.open(key, first, alive);
  const stop = new AbortController();
  const begun = claim.begin(once, stop.signal);
  const reason = new Error("the worker stops");
  stop.abort(reason);
  await expect(begun).rejects.toBe(reason);
  expect(await files()).toEqual([]);
});

test("an urgent look waits for nobody", async () => {
  const { one, other, clock } = await newGroup();
  using running = one.open(key, first, alive);
  await running.begin(once, never);
  const history = (): Promise<unknown> => other.open(key, again, alive).history(never, true);
  expect(await history()).toEqual({ kind: "open", runs: 1, mayHaveStarted: true });
  await running.answered(reply);
  expect(await history()).toEqual({ kind: "answered", answer: reply });
  expect(clock.slept).toEqual([]);
});

test("a worker that was taken for dead finds that its call was answered", async () => {
  const { one, other, passUntil } = await newGroup();
  using stalled = one.open(key, first, alive);
  await stalled.begin(once, never);
  expect(await stalled.isAnswered(reply)).toBe(false);
  const second = other.open(key, again, alive);
  await passUntil(second.history(never, false));
  await second.answered(reply);
  expect(await stalled.isAnswered(reply)).toBe(true);
});

describe("the answer of a worker that lost the broker", () => {
  /** A run that ends after the connection of its call was lost, and the next worker. */
  const endCutOff = async (payload: Buffer | undefined, isRepeatable = once) => {
    const group = await newGroup();
    const running = group.one.open(key, first, lostAfterBegin());
    await running.begin(isRepeatable, never);
    expect(await running.isAnswered(payload)).toBe(false);
    const waiting = group.other.open(key, again, alive);
    return { ...group, running, waiting };
  };
  const tooLarge = Buffer.alloc(maxKeptAnswerBytes + 1);

  test.each([once, repeatable])(
    "is left to others, who give it when the worker does not come back, when it is repeatable: %s",
    async (isRepeatable) => {
      const { waiting, passUntil } = await endCutOff(reply, isRepeatable);
      const history = waiting.history(never, false);
      expect(await passUntil(history)).toBeGreaterThanOrEqual(goneMs - pollMs);
      expect(await history).toEqual({ kind: "unpublished", answer: reply });
    },
  );

  test("is left to others also when its call did not start", async () => {
    const { one, other, clock } = await newGroup();
    const refused = one.open(key, first, lostAfterBegin());
    expect(await refused.isAnswered(reply)).toBe(false);
    await refused.refresh(clock.monotonicMs());
    const history = await other.open(key, again, alive).history(never, true);
    expect(history).toEqual({ kind: "unpublished", answer: reply });
  });

  test("is given by others when their delivery is nearly the last", async () => {
    const { waiting, clock } = await endCutOff(reply);
    const history = await waiting.history(never, true);
    expect(history).toEqual({ kind: "unpublished", answer: reply });
    expect(clock.slept).toEqual([]);
  });

  test("is given by that worker when it comes back", async () => {
    const { running, waiting, passUntil } = await endCutOff(reply);
    const history = waiting.history(never, false);
    await running.answered(reply);
    expect(await passUntil(history)).toBeLessThan(goneMs);
    expect(await history).toEqual({ kind: "answered", answer: reply });
    expect(running.overtaken.aborted).toBe(false);
  });

  test.each([
    ["kept", reply],
    ["too large to be kept", tooLarge],
  ])("is given up when others answered, and it is %s", async (_, payload) => {
    const { running, waiting, clock, passUntil } = await endCutOff(payload);
    await passUntil(waiting.history(never, false));
    await waiting.answered(reply);
    expect(running.overtaken.aborted).toBe(false);
    await running.refresh(clock.monotonicMs());
    expect(running.overtaken.reason).toBeInstanceOf(OvertakenError);
  });

  test.each([
    ["larger than is kept", tooLarge],
    ["none that others may give", undefined],
  ])("is not given by others when it is %s", async (_, payload) => {
    const { waiting, passUntil } = await endCutOff(payload);
    const history = waiting.history(never, false);
    await passUntil(history);
    expect(await history).toEqual({ kind: "open", runs: 1, mayHaveStarted: true });
  });

  test("keeps others from a second run when it is too large, and the call is repeatable", async () => {
    const { running, files } = await endCutOff(tooLarge, repeatable);
    expect(await files()).toHaveLength(1);
    await running.release();
  });

  test("is left when the store takes it again", async () => {
    const { base, one, clock, newWorker, logged } = await newGroup();
    const running = one.open(key, first, lostAfterBegin());
    await running.begin(repeatable, never);
    await rename(base, `${base}-away`);
    await running.isAnswered(reply);
    expect(logged.join("")).toContain("mark.write_failed");
    await rename(`${base}-away`, base);
    clock.advance(touchMs);
    await running.refresh(clock.monotonicMs());
    const history = await newWorker().open(key, again, alive).history(never, true);
    expect(history).toEqual({ kind: "unpublished", answer: reply });
  });
});

test.each([once, repeatable])(
  "an answer that the broker refuses is left to others, when its call is repeatable: %s",
  async (isRepeatable) => {
    const { one, other, passUntil } = await newGroup();
    using running = one.open(key, first, alive);
    await running.begin(isRepeatable, never);
    await running.isAnswered(reply);
    await running.release();
    const history = other.open(key, again, alive).history(never, false);
    await passUntil(history);
    expect(await history).toEqual({ kind: "unpublished", answer: reply });
  },
);

test("a worker that stood still lets its connection prove itself before it begins a call", async () => {
  const { one, clock, passUntil } = await newGroup();
  one.refresh();
  using claim = one.open(key, first, alive);
  clock.advance(stallMs + 1);
  const begun = claim.begin(repeatable, never);
  expect(await passUntil(begun)).toBeGreaterThanOrEqual(settlingMs);
});

test("an answer that waits for the broker is kept alive for as long after the process stood still", async () => {
  const { one, other, clock } = await newGroup();
  one.refresh();
  using waiting = one.open(key, first, alive);
  await waiting.begin(once, never);
  await waiting.isAnswered(undefined);
  clock.advance(unpublishedMs + 1);
  one.refresh();
  await waiting.refresh(clock.monotonicMs());
  using next = other.open(key, again, alive);
  let found: unknown;
  void next.history(never, false).then((value) => (found = value));
  for (let waitedMs = 0; waitedMs < goneMs + quietEnoughMs; waitedMs += pollMs) {
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    if (waitedMs % touchMs === 0) await waiting.refresh(clock.monotonicMs());
    clock.advance(pollMs);
  }
  expect(found).toBeUndefined();
  await waiting.answered(reply);
  await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
  clock.advance(pollMs);
  await vi.waitFor(() => expect(found).toEqual({ kind: "answered", answer: reply }), patience);
});

describe("without its store", () => {
  test("a call may have begun, and one that must not run twice does not begin, while others do", async () => {
    const { base, one, logged, passUntil } = await newGroup();
    await rm(base, { recursive: true });
    using claim = one.open(key, again, alive);
    const history = claim.history(never, false);
    await passUntil(history);
    expect(await history).toEqual({ kind: "open", runs: 0, mayHaveStarted: true });
    expect(logged.join("")).toContain("mark.read_failed");
    const begun = claim.begin(once, never);
    await passUntil(begun);
    await expect(begun).rejects.toThrow(StoreError);
    await passUntil(claim.begin(repeatable, never));
  });

  test("a call that was answered is answered all the same", async () => {
    const { base, one, logged } = await newGroup();
    using claim = one.open(key, first, alive);
    await claim.begin(once, never);
    await rm(base, { recursive: true });
    await claim.answered(reply);
    expect(logged.join("")).toContain("mark.write_failed");
  });
});
