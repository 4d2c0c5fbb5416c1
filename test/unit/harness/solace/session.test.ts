/**
 * A client that is logged in and says anything at all: the broker carries it out, refuses it, or
 * cuts the client off.
 */
import { fc, test as propertyTest } from "../../../support/properties/property.ts";
import { expect, test } from "vitest";
import {
  assured,
  assuredField,
  encodeAssured,
} from "../../../../harness/fakes/solace/wire/assured-control.ts";
import {
  MalformedError,
  numberBytes,
  textField,
} from "../../../../harness/fakes/solace/wire/fields.ts";
import {
  decodeFrame,
  encodeFrame,
  frameLength,
  protocol,
} from "../../../../harness/fakes/solace/wire/frame.ts";
import { param } from "../../../../harness/fakes/solace/wire/params.ts";
import { Router } from "../../../../harness/fakes/solace/router.ts";
import { Session } from "../../../../harness/fakes/solace/session.ts";
import { maxTopicBytes } from "../../../../worker/protocol/topics.ts";

/** A session on a broker with a queue, and what the broker says to it. */
function logIn() {
  const router = new Router({ now: () => 0, rejectsUnmatched: false });
  router.createQueue("q", { accessType: "non-exclusive" });
  const answers: Buffer[] = [];
  const session = new Session(router, {
    clientName: "client",
    username: "user",
    isBusy: () => false,
    send: (bytes) => answers.push(bytes),
  });
  return { router, session, answers };
}

/** A value of a field: bytes, a number of some width, or a name that means something here. */
const value = fc.oneof(
  fc.uint8Array({ maxLength: 20 }).map((array) => Buffer.from(array)),
  fc
    .record({ width: fc.constantFrom(1 as const, 4, 8), number: fc.nat(3) })
    .map(({ width, number }) => numberBytes(number, width)),
  fc.constant(numberBytes(2 ** 40, 8)),
  fc.constantFrom("q\0", "t\0", "#P2P/QUE/q\0").map((text) => Buffer.from(text)),
);

function fieldsOf(types: readonly number[]) {
  return fc.array(fc.record({ type: fc.constantFrom(...types), value }), { maxLength: 4 });
}

const assuredPayload = fc
  .record({
    type: fc.constantFrom(...Object.values(assured)),
    fields: fieldsOf(Object.values(assuredField)),
  })
  .map(({ type, fields }) => encodeAssured(type, fields));

const header = { isAssured: fc.boolean(), fields: fieldsOf(Object.values(param)) };

const frames = fc.oneof(
  fc.record({
    ...header,
    protocol: fc.constant(protocol.assuredControl),
    payload: assuredPayload,
  }),
  fc.record({
    ...header,
    protocol: fc.constantFrom(...Object.values(protocol)),
    payload: fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
  }),
);

propertyTest.prop([fc.array(frames, { maxLength: 6 })], { numRuns: 2_000 })(
  "whatever a client says is answered in whole frames, or is its end alone",
  (said) => {
    const { session, answers } = logIn();
    try {
      for (const frame of said) session.handle(decodeFrame(encodeFrame(frame)));
    } catch (error) {
      expect(error).toBeInstanceOf(MalformedError);
    }
    session.close();
    for (const answer of answers) expect(frameLength(answer)).toBe(answer.length);
  },
);

test.each([
  ["is empty", ""],
  ["is longer than topics are", `${"x".repeat(maxTopicBytes)}/`],
])("a subscription that %s is refused", (_, topic) => {
  const { session, answers } = logIn();
  const body = Buffer.from(`${topic}\0`);
  const head = Buffer.concat([Buffer.of(0x80), numberBytes(6 + body.length, 4), Buffer.of(0x0c)]);
  session.handle(
    decodeFrame(
      encodeFrame({
        protocol: protocol.subscription,
        correlationTag: 7,
        payload: Buffer.concat([head, body]),
      }),
    ),
  );
  const answer = decodeFrame(answers[0]!);
  expect(answer.correlationTag).toBe(7);
  expect(answer.fields.bytes(param.response)?.readUInt32BE()).toBe(400);
  expect(session.subscriptions.size).toBe(0);
});

test("a message on a flow that is not open is not answered", () => {
  const { router, session, answers } = logIn();
  const fields = [textField(param.topic, "#P2P/QUE/q")];
  session.handle(decodeFrame(encodeFrame({ protocol: protocol.message, isAssured: true, fields })));
  expect(answers).toEqual([]);
  expect(router.queues.get("q")?.describe().depth).toBe(0);
});
