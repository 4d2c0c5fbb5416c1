/**
 * What a session starts with when some of its queues are refused or do not answer.
 */
import { describe, expect, test } from "vitest";
import { abortable } from "../../../worker/support/within.ts";
import { BrokerError } from "../../../worker/broker/broker.ts";
import { serveAll } from "../../../worker/broker/serve-all.ts";
import { HandClock } from "./hand-clock.ts";

const never = new AbortController().signal;

/** A broker that answers for each tool when it is told to. */
class Answers {
  readonly clock = new HandClock();
  readonly asked: string[] = [];
  readonly later = new Map<string, BrokerError>();
  readonly #answers = new Map<string, PromiseWithResolvers<void>>();

  serve(tool: string, signal: AbortSignal): Promise<void> {
    this.asked.push(tool);
    return abortable(this.of(tool).promise, signal);
  }

  serveLater(tool: string, failure: BrokerError): void {
    this.later.set(tool, failure);
  }

  of(tool: string): PromiseWithResolvers<void> {
    const answer = this.#answers.get(tool) ?? Promise.withResolvers<void>();
    this.#answers.set(tool, answer);
    return answer;
  }

  refuse(tool: string, transient: boolean): BrokerError {
    const failure = new BrokerError(`No ${tool}`, { transient });
    this.of(tool).reject(failure);
    return failure;
  }
}

describe("serving several tools", () => {
  test("asks for all at once, and is done when all are served", async () => {
    const answers = new Answers();
    const done = serveAll(["a", "b"], answers, never);
    expect(answers.asked).toEqual(["a", "b"]);
    answers.of("b").resolve();
    answers.of("a").resolve();
    await done;
    expect(answers.later.size).toBe(0);
    expect(answers.clock.sleeping).toBe(0);
  });

  test("leaves those that are refused for later", async () => {
    const answers = new Answers();
    const done = serveAll(["a", "b"], answers, never);
    const failure = answers.refuse("a", false);
    answers.of("b").resolve();
    await done;
    expect([...answers.later]).toEqual([["a", failure]]);
  });

  test("leaves those for later that are slow while others are served", async () => {
    const answers = new Answers();
    let isDone = false;
    const done = serveAll(["slow", "b"], answers, never).then(() => (isDone = true));
    answers.of("b").resolve();
    await new Promise(setImmediate);
    answers.clock.advance(2_999);
    await new Promise(setImmediate);
    expect(isDone).toBe(false);
    answers.clock.advance(1);
    await done;
    expect(answers.later.get("slow")).toMatchObject({ transient: true });
  });

  test("waits for the first however long it takes, and for others as long as some come", async () => {
    const answers = new Answers();
    let isDone = false;
    const tools = ["slow", "slower", "slowest"];
    const done = serveAll(tools, answers, never).then(() => (isDone = true));
    answers.clock.advance(20_000);
    await new Promise(setImmediate);
    for (const tool of ["slow", "slower"]) {
      answers.of(tool).resolve();
      await new Promise(setImmediate);
      answers.clock.advance(2_999);
      await new Promise(setImmediate);
      expect(isDone).toBe(false);
    }
    answers.clock.advance(1);
    await done;
    expect([...answers.later.keys()]).toEqual(["slowest"]);
  });

  test("fails when none is served, in a way that tells whether another attempt may help", async () => {
    const answers = new Answers();
    const done = serveAll(["a", "b"], answers, never);
    answers.refuse("a", false);
    answers.refuse("b", true);
    await expect(done).rejects.toMatchObject({
      message: "None of 2 tools can be served. No b",
      transient: true,
    });
    expect(answers.later.size).toBe(0);
  });

  test("fails with what is said of the only tool", async () => {
    const answers = new Answers();
    const done = serveAll(["a"], answers, never);
    const failure = answers.refuse("a", false);
    await expect(done).rejects.toBe(failure);
  });

  test("ends with its signal", async () => {
    const answers = new Answers();
    const stopping = new AbortController();
    const done = serveAll(["a", "b"], answers, stopping.signal);
    answers.of("a").resolve();
    stopping.abort(new Error("stopped"));
    await expect(done).rejects.toThrow("stopped");
    expect(answers.later.size).toBe(0);
    expect(answers.clock.sleeping).toBe(0);
  });

  test("of none at all is done", async () => {
    await serveAll([], new Answers(), never);
  });
});
