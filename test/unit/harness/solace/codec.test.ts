/**
 * SMF on the wire: what is written can be read, streams are cut where frames end, and nonsense is
 * refused.
 */
import { fc, test as propertyTest } from "../../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import {
  assured,
  assuredField,
  decodeAssured,
  encodeAssured,
  readSettled,
} from "../../../../harness/fakes/solace/wire/assured-control.ts";
import {
  clientControl,
  decodeClientControl,
  encodeClientControl,
  encodeWelcome,
  readLogin,
} from "../../../../harness/fakes/solace/wire/client-control.ts";
import { Deframer } from "../../../../harness/fakes/solace/wire/deframer.ts";
import {
  type Field,
  Fields,
  MalformedError,
  numberBytes,
  numberField,
  readNumber,
  textField,
} from "../../../../harness/fakes/solace/wire/fields.ts";
import {
  decodeFrame,
  encodeFrame,
  maxFrameBytes,
  maxHeaderBytes,
  protocol,
} from "../../../../harness/fakes/solace/wire/frame.ts";
import {
  decodeParams,
  encodeParams,
  param,
  readExtended,
  redeliveryCountParam,
  responseParam,
} from "../../../../harness/fakes/solace/wire/params.ts";
import { decodeSubscriptionRequest } from "../../../../harness/fakes/solace/subscription-messages.ts";

const bytes = (options: { maxLength: number }) =>
  fc.uint8Array(options).map((array) => Buffer.from(array));

/** Fields whose types fit into `bits` bits; short and long ones. */
function someFields(bits: number): fc.Arbitrary<readonly Field[]> {
  const type = fc.integer({ min: 1, max: 2 ** bits - 1 });
  return fc.array(fc.record({ type, value: bytes({ maxLength: 600 }) }), { maxLength: 6 });
}

const frames = fc.record({
  protocol: fc.constantFrom(...Object.values(protocol)),
  isAssured: fc.boolean(),
  isDeadMessageEligible: fc.boolean(),
  priority: fc.integer({ min: 0, max: 15 }),
  correlationTag: fc.option(fc.integer({ min: 0, max: 0xffffff }), { nil: undefined }),
  fields: someFields(5),
  payload: bytes({ maxLength: 2_000 }),
});

describe("a frame", () => {
  propertyTest.prop([frames])("is read as it was written", (frame) => {
    const { fields, bytes: raw, ...decoded } = decodeFrame(encodeFrame(frame));
    expect({ ...decoded, fields: [...fields] }).toEqual(frame);
    expect(raw).toEqual(encodeFrame(frame));
  });

  test("has the bits where SMF has them", () => {
    const frame = encodeFrame({
      protocol: protocol.message,
      isAssured: true,
      isDeadMessageEligible: true,
      priority: 4,
      correlationTag: 0x010203,
      fields: [textField(param.topic, "t")],
      payload: Buffer.from("x"),
    });
    expect(frame.toString("hex")).toBe(
      "1b0d4001" + "00000014" + "00000015" + "23010203" + "18047400" + "78",
    );
  });

  test("says what a broker says to a request without a NUL", () => {
    const response = responseParam({ code: 200, text: "OK" });
    expect(encodeParams([response]).toString("hex")).toBe("0808000000c84f4b");
  });

  test("says how often a message came before in an extended parameter", () => {
    expect(encodeParams([redeliveryCountParam(2)]).toString("hex")).toBe("1f08302e00000002");
  });

  test.each([
    ["of no bytes", "0001", ""],
    ["of a fixed width", "302e01020304", "01020304"],
    ["that says its length in a byte", "5031" + "05" + "aabb", "aabb"],
    ["that says its length in two bytes", "6031" + "0006" + "aabb", "aabb"],
  ])("may have an extended parameter %s", (_, hex, value) => {
    const stream = { type: param.extended, value: Buffer.from(`${hex}1002ff`, "hex") };
    const [first, second, ...rest] = readExtended(new Fields([stream]));
    expect(first?.value.toString("hex")).toBe(value);
    expect(second).toEqual({ type: 2, value: Buffer.of(0xff) });
    expect(rest).toEqual([]);
  });

  test.each([
    ["cut off", "302e0102"],
    ["shorter than its head", "503102"],
    ["of an unknown width", "7031"],
  ])("with an extended parameter that is %s is refused", (_, hex) => {
    const stream = { type: param.extended, value: Buffer.from(hex, "hex") };
    expect(() => readExtended(new Fields([stream]))).toThrow(MalformedError);
  });

  test.each([
    ["that ends within a parameter", "1805"],
    ["whose parameter ends before it begins", "1801"],
    ["whose long parameter has no length", "1800"],
    ["whose light parameter is not there", "23"],
  ])("%s is refused", (_, hex) => {
    expect(() => decodeParams(Buffer.from(hex, "hex"))).toThrow(MalformedError);
  });
});

describe("a stream", () => {
  propertyTest.prop([fc.array(frames, { maxLength: 5 }), fc.infiniteStream(fc.nat(700))])(
    "gives the same frames wherever it is cut",
    (sent, cuts) => {
      const wanted = sent.map(encodeFrame);
      const stream = Buffer.concat(wanted);
      const deframer = new Deframer();
      const got: Buffer[] = [];
      for (let at = 0; at < stream.length;) {
        const next = at + (cuts.next() as IteratorYieldResult<number>).value;
        got.push(...deframer.push(stream.subarray(at, next)));
        at = next;
      }
      expect(got).toEqual(wanted);
    },
  );

  test("gives frames that do not hold on to what came with them", () => {
    const sent = encodeFrame({ protocol: protocol.keepAliveV2 });
    const chunk = Buffer.concat([sent, Buffer.alloc(4)]);
    const [frame] = [...new Deframer().push(chunk)];
    chunk.fill(0);
    expect(frame).toEqual(sent);
  });

  const prelude = (flags: number, headerLength: number, length: number): Buffer =>
    Buffer.concat([flags, headerLength, length].map((value) => numberBytes(value, 4)));
  const flags = 0x030b0001;

  test.each([
    ["another version of SMF", prelude(0x040b0001, 12, 12), /version/],
    ["a header that is too short", prelude(flags, 11, 12), /header of 11/],
    ["a header longer than its frame", prelude(flags, 14, 13), /header of 14/],
    [
      "a header beyond the limit",
      prelude(flags, maxHeaderBytes + 1, maxFrameBytes),
      /header of 262145/,
    ],
    ["a frame beyond the limit", prelude(flags, 12, maxFrameBytes + 1), /frame of 33554433/],
    ["what is no SMF at all", Buffer.from("GET / HTTP/1.1\r\n"), MalformedError],
  ])("with %s is refused by its first bytes", (_, start, says) => {
    expect(() => [...new Deframer().push(start)]).toThrow(says);
  });
});

describe("numbers", () => {
  propertyTest.prop([fc.constantFrom(1 as const, 2, 3, 4, 8), fc.nat(255)])(
    "are read in any width",
    (width, value) => {
      expect(readNumber(numberBytes(value, width))).toBe(value);
    },
  );

  test.each([
    ["no bytes", ""],
    ["more bytes than known", "000000000000000001"],
    ["2^53", "0020000000000000"],
  ])("of %s are refused", (_, hex) => {
    expect(() => readNumber(Buffer.from(hex, "hex"))).toThrow(MalformedError);
  });

  test("of more bytes than the field has are refused", () => {
    const fields = new Fields([numberField(1, 5, 2)]);
    expect(fields.number(1, 2)).toBe(5);
    expect(() => fields.number(1, 1)).toThrow(MalformedError);
  });
});

describe("assured control", () => {
  propertyTest.prop([fc.integer({ min: 0, max: 255 }), someFields(6)])(
    "is read as it was written",
    (type, fields) => {
      const decoded = decodeAssured(encodeAssured(type, fields));
      expect({ type: decoded.type, fields: [...decoded.fields] }).toEqual({ type, fields });
    },
  );

  test("names ranges of settled messages, accepted unless it says otherwise", () => {
    const range = (first: number, last: number, ...outcome: readonly number[]): Field => ({
      type: assuredField.settled,
      value: Buffer.concat([
        numberBytes(first, 8),
        numberBytes(last, 8),
        Buffer.from(Uint8Array.from(outcome)),
      ]),
    });
    const settled = [range(1, 3), range(4, 4, 1), range(5, 6, 2), range(7, 7, 3)];
    const { fields } = decodeAssured(encodeAssured(assured.acknowledge, settled));
    expect(readSettled(fields)).toEqual([
      { first: 1, last: 3, outcome: "accepted" },
      { first: 4, last: 4, outcome: "failed" },
      { first: 5, last: 6, outcome: "released" },
      { first: 7, last: 7, outcome: "rejected" },
    ]);
    expect(() => readSettled(new Fields([range(8, 8, 9)]))).toThrow("outcome 9");
  });

  test.each([
    ["of another version", "02030000"],
    ["cut off within its head", "0303"],
    ["longer than its frame", "030300000009"],
  ])("%s is refused", (_, hex) => {
    expect(() => decodeAssured(Buffer.from(hex, "hex"))).toThrow(MalformedError);
  });
});

describe("a login", () => {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const header = (...fields: readonly Field[]) => ({
    correlationTag: undefined,
    fields: new Fields(fields),
  });

  test("says who the client is", () => {
    const payload = encodeClientControl(clientControl.login, [
      textField(4, "a test"),
      textField(5, "client/1"),
      textField(6, "vpn"),
    ]);
    const { type, fields } = decodeClientControl(payload);
    expect(type).toBe(clientControl.login);
    const credentials = header(
      textField(param.username, base64("user")),
      textField(param.password, base64("gehéim")),
    );
    expect(readLogin(credentials, fields, "CN")).toEqual({
      clientName: "client/1",
      vpn: "vpn",
      scheme: "basic",
      username: "user",
      password: "gehéim",
      accessToken: undefined,
      certificateName: "CN",
      description: "a test",
    });
  });

  test.each([
    [0x01, "client-certificate"],
    [0x0a, "oauth"],
  ])("by scheme %i is one by %s", (value, scheme) => {
    const login = readLogin(header(), new Fields([numberField(17, value, 1)]), undefined);
    expect(login.scheme).toBe(scheme);
  });

  test("by an unknown scheme is refused", () => {
    const fields = new Fields([numberField(17, 0x77, 1)]);
    expect(() => readLogin(header(), fields, undefined)).toThrow(MalformedError);
  });

  test("is answered with the broker's name and the client's inbox", () => {
    const welcome = encodeWelcome({
      routerName: "r",
      clientName: "c",
      vpn: "v",
      inbox: "#P2P/v:r/1/c",
    });
    const { type, fields } = decodeClientControl(welcome);
    expect(type).toBe(clientControl.login);
    expect([5, 6, 8, 10, 12].map((number) => fields.text(number))).toEqual([
      "c",
      "v",
      "#P2P/v:r/1/c",
      "v:r",
      "r",
    ]);
  });
});

describe("a subscription request", () => {
  const head = (type: number, flags: number, body: Buffer): Buffer =>
    Buffer.concat([
      Buffer.of(0x80 | type),
      numberBytes(6 + body.length, 4),
      Buffer.of(flags),
      body,
    ]);

  test.each([
    [0, "add"],
    [1, "remove"],
  ])("of type %i wants a client to %s a topic", (type, action) => {
    expect(decodeSubscriptionRequest(head(type, 0x0c, Buffer.from("a/é/>\0")))).toEqual({
      action,
      queue: undefined,
      topic: "a/é/>",
      wantsAnswer: true,
    });
  });

  test.each([
    [2, "add"],
    [3, "remove"],
  ])("of type %i wants a queue to %s a topic", (type, action) => {
    const body = Buffer.from("\x04q/1\0\x04a/>\0");
    expect(decodeSubscriptionRequest(head(type, 0x04, body))).toEqual({
      action,
      queue: "q/1",
      topic: "a/>",
      wantsAnswer: false,
    });
  });

  test.each([
    ["of no known type", head(9, 0, Buffer.from("a\0"))],
    ["whose queue is cut off", head(2, 0, Buffer.from("\x09q"))],
    ["that is shorter than its head", Buffer.of(0x80)],
  ])("%s is refused", (_, payload) => {
    expect(() => decodeSubscriptionRequest(payload)).toThrow(MalformedError);
  });
});
