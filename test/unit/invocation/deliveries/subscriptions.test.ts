/**
 * Subscriptions follow what is desired, also when the broker does not go along at first.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { BrokerSession } from "../../../../worker/broker/broker.ts";
import {
  Subscriptions,
  subscriptionRetryMs,
} from "../../../../worker/invocation/deliveries/subscriptions.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";
import { HandClock } from "../../broker/hand-clock.ts";

const never = new AbortController().signal;

/** Tools of the default queue. */
function tools(...names: readonly string[]): ReadonlyMap<string, string> {
  return new Map(names.map((name) => [name, "default"]));
}

/** A session that refuses some tools, and holds others up. */
class PickySession implements Pick<BrokerSession, "serve" | "leave"> {
  readonly refused = new Set<string>();
  readonly heard: string[] = [];
  /** What every change waits for. */
  gate: Promise<void> = Promise.resolve();

  serve(tool: string): Promise<void> {
    return this.#change("serve", tool);
  }

  leave(tool: string): Promise<void> {
    return this.#change("leave", tool);
  }

  async #change(action: string, tool: string): Promise<void> {
    this.heard.push(`${action} ${tool}`);
    await this.gate;
    if (this.refused.has(tool)) throw new Error(`${tool} is refused`);
  }
}

function setUp(served: readonly string[] = []) {
  const session = new PickySession();
  const clock = new HandClock();
  const subscriptions = new Subscriptions(
    session,
    tools(...served),
    createLogger("silent", 2),
    clock,
  );
  const passDelay = async (): Promise<void> => {
    clock.advance(subscriptionRetryMs);
    await nextTurn();
  };
  return { session, clock, subscriptions, passDelay };
}

describe("subscriptions", () => {
  test("serve what is desired and leave what is not, and wait for nothing then", async () => {
    const { session, clock, subscriptions } = setUp(["old", "kept"]);
    await subscriptions.follow(tools("kept", "new"), never);
    expect(session.heard.toSorted()).toEqual(["leave old", "serve new"]);
    expect([...subscriptions.served.keys()].toSorted()).toEqual(["kept", "new"]);
    expect(clock.slept).toEqual([]);
  });

  test("serve a tool again that another queue is to hold", async () => {
    const { session, subscriptions } = setUp(["moved", "kept"]);
    await subscriptions.follow(new Map([...tools("kept"), ["moved", "heavy"]]), never);
    expect(session.heard).toEqual(["serve moved"]);
    expect(subscriptions.served.get("moved")).toBe("heavy");
  });

  test("try a tool again that could not be served, and only that one, until it is", async () => {
    const { session, clock, subscriptions, passDelay } = setUp();
    session.refused.add("picky");
    await subscriptions.follow(tools("picky", "plain"), never);
    expect([...subscriptions.served.keys()]).toEqual(["plain"]);
    await passDelay();
    session.refused.clear();
    await passDelay();
    expect([...subscriptions.served.keys()].toSorted()).toEqual(["picky", "plain"]);
    expect(session.heard.toSorted()).toEqual([
      "serve picky",
      "serve picky",
      "serve picky",
      "serve plain",
    ]);
    expect(clock.slept).toEqual([subscriptionRetryMs, subscriptionRetryMs]);
    expect(clock.sleeping).toBe(0);
  });

  test("try a tool again that could not be left", async () => {
    const { session, subscriptions, passDelay } = setUp(["clinging"]);
    session.refused.add("clinging");
    await subscriptions.follow(tools(), never);
    expect([...subscriptions.served.keys()]).toEqual(["clinging"]);
    session.refused.clear();
    await passDelay();
    expect([...subscriptions.served.keys()]).toEqual([]);
  });

  test("try no tool again that is not desired any more", async () => {
    const { session, clock, subscriptions, passDelay } = setUp();
    session.refused.add("picky");
    await subscriptions.follow(tools("picky"), never);
    await subscriptions.follow(tools("other"), never);
    expect(clock.sleeping).toBe(0);
    await passDelay();
    expect(session.heard).toEqual(["serve picky", "serve other"]);
  });

  test("leave a tool whose retry succeeded just as it was not desired any more", async () => {
    const { session, subscriptions, passDelay } = setUp();
    session.refused.add("picky");
    await subscriptions.follow(tools("picky"), never);
    session.refused.clear();
    const { promise, resolve } = Promise.withResolvers<void>();
    session.gate = promise;
    await passDelay();
    const following = subscriptions.follow(tools(), never);
    resolve();
    await following;
    expect(session.heard).toEqual(["serve picky", "serve picky", "leave picky"]);
    expect([...subscriptions.served.keys()]).toEqual([]);
  });

  test("leave no sleeper behind when the signal aborts", async () => {
    const { session, clock, subscriptions, passDelay } = setUp();
    session.refused.add("picky");
    const controller = new AbortController();
    await subscriptions.follow(tools("picky"), controller.signal);
    expect(clock.sleeping).toBe(1);
    controller.abort(new Error("enough"));
    expect(clock.sleeping).toBe(0);
    await passDelay();
    expect(session.heard).toEqual(["serve picky"]);
  });

  test("leave no sleeper behind when they are disposed of, not even after an attempt", async () => {
    const { session, clock, subscriptions, passDelay } = setUp();
    session.refused.add("picky");
    await subscriptions.follow(tools("picky"), never);
    const { promise, resolve } = Promise.withResolvers<void>();
    session.gate = promise;
    await passDelay();
    subscriptions[Symbol.dispose]();
    resolve();
    await nextTurn();
    expect(clock.sleeping).toBe(0);
    expect(session.heard).toEqual(["serve picky", "serve picky"]);
  });

  test("reject with the signal's reason", async () => {
    const { session, subscriptions } = setUp();
    session.refused.add("picky");
    const reason = new Error("enough");
    const following = subscriptions.follow(tools("picky"), AbortSignal.abort(reason));
    await expect(following).rejects.toBe(reason);
  });
});
