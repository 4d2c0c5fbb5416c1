/**
 * What becomes of a call by what the broker says of its answer.
 */
import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import {
  BrokerError,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
} from "../../../worker/broker/broker.ts";
import { Answers, type EncodedResponse } from "../../../worker/invocation/answers.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

const topic = "reply/here";
const never = new AbortController().signal;
const response: EncodedResponse = { id: "7", payload: new Uint8Array(1_000) };
const refused = new BrokerError("the message is too large", { transient: false });
const overloaded = new BrokerError("too much waits already", { transient: true });

/** Publishes one answer over a broker that says these things, one after the other. */
async function publish(
  says: readonly (PublishOutcome | Error)[],
  closed: Promise<SessionEnd> = new Promise(() => {}),
) {
  const sent: OutboundMessage[] = [];
  const logged: string[] = [];
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    logged.push(chunk.toString());
    done();
  };
  const session = {
    closed,
    publish(message: OutboundMessage): Promise<PublishOutcome> {
      sent.push(message);
      const said = says[sent.length - 1]!;
      return said instanceof Error ? Promise.reject(said) : Promise.resolve(said);
    },
  };
  const log = createLogger("debug", new Writable({ write }));
  const answers = new Answers(session, log);
  const published = await answers.publish({ topic }, response, never);
  return { published, sent, answers, logged: logged.join("") };
}

describe("the call of an answer is settled", () => {
  test("as accepted when the broker has it", async () => {
    const { published, sent, answers, logged } = await publish(["confirmed"]);
    expect(published).toEqual({
      settlement: "accepted",
      response: { ...response, isDelivered: true },
    });
    expect(sent).toEqual([{ topic, payload: response.payload, isRetried: true }]);
    expect(answers.unroutable).toBe(0);
    expect(logged).toBe("");
  });

  test("as accepted when nobody is there to get it, which is logged and counted", async () => {
    const { published, answers, logged } = await publish(["unroutable"]);
    expect(published).toEqual({
      settlement: "accepted",
      response: { ...response, isDelivered: false },
    });
    expect(answers.unroutable).toBe(1);
    expect(JSON.parse(logged)).toMatchObject({
      level: "warn",
      topic,
      unroutable: 1,
      event: "answer.unroutable",
    });
  });

  test.each([
    ["the broker does not take it for long, so that it comes again", overloaded],
    [
      "the worker does not wait for the broker any longer",
      new Error("the worker is shutting down"),
    ],
  ])("as failed when %s", async (_, error) => {
    const { published, sent, logged } = await publish([error]);
    expect(published).toEqual({ settlement: "failed", response });
    expect(sent).toHaveLength(1);
    expect(logged).toContain("answer.publish_failed");
  });

  test("as accepted when a short error is taken in the place of what never is", async () => {
    const { published, sent } = await publish([refused, "confirmed"]);
    expect(published.settlement).toBe("accepted");
    expect(published.response.id).toBe("7");
    expect(published.response.payload).toBe(sent[1]?.payload);
    expect(sent[1]?.topic).toBe(topic);
    expect(JSON.parse(Buffer.from(sent[1]!.payload).toString())).toEqual({
      jsonrpc: "2.0",
      id: "7",
      error: {
        code: "RESOURCE_EXHAUSTED",
        message:
          "The broker does not take the answer, which has 1000 bytes. Return large data as an artifact.",
      },
    });
  });

  test("as rejected when that is not taken either, so that it does not come for ever", async () => {
    const { published, sent } = await publish([refused, refused]);
    expect(published.settlement).toBe("rejected");
    expect(sent).toHaveLength(2);
  });

  test("as failed when that is not taken now", async () => {
    expect((await publish([refused, overloaded])).published.settlement).toBe("failed");
  });

  test("not at all when the session has ended, whatever the error says", async () => {
    const ended = Promise.resolve({ reason: "lost" } as const);
    const sessionEnded = new BrokerError("The broker session has ended", { transient: false });
    const { published, sent } = await publish([sessionEnded], ended);
    expect(published).toEqual({ settlement: undefined, response });
    expect(sent).toHaveLength(1);
  });
});
