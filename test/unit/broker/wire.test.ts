/**
 * The frames of the DevBroker protocol: commands and answers.
 */
import { fc, test } from "../../support/properties/property.ts";
import { describe, expect } from "vitest";
import {
  decodeCommand,
  encodeError,
  encodeMessage,
  encodeOk,
  encodeTimeout,
} from "../../../harness/dev-broker/dev-broker-frames.ts";
import { decodeAnswer, encodeCommand, encodePublish } from "../../../worker/broker/dev/wire.ts";

const bytes = (text: string): Buffer => Buffer.from(text);
const text = (line: Uint8Array | undefined): string | undefined =>
  line && Buffer.from(line).toString();

describe("a command", () => {
  test("is what the client encoded", () => {
    expect(
      decodeCommand(encodeCommand({ cmd: "CONNECT", client_id: "w", subscriptions: ["a/>"] })),
    ).toEqual({ kind: "CONNECT", clientId: "w", subscriptions: ["a/>"] });
    expect(decodeCommand(encodeCommand({ cmd: "SUBSCRIBE", topic_pattern: "a" }))).toEqual({
      kind: "SUBSCRIBE",
      topicPattern: "a",
    });
    expect(decodeCommand(encodeCommand({ cmd: "RECEIVE", timeout_ms: 7 }))).toEqual({
      kind: "RECEIVE",
      timeoutMs: 7,
    });
    expect(decodeCommand(encodeCommand({ cmd: "DISCONNECT" }))).toEqual({ kind: "DISCONNECT" });
  });

  test.prop([fc.string({ minLength: 1 }), fc.jsonValue(), fc.nat(3)])(
    "to publish carries topic and payload, on one line",
    (topic, payload, indent) => {
      const line = encodePublish(topic, bytes(JSON.stringify(payload, null, indent)), { n: 1 });
      expect(line.indexOf("\n")).toBe(line.length - 1);
      const command = decodeCommand(line.subarray(0, -1));
      if (command.kind !== "PUBLISH") throw new Error(command.kind);
      expect(command.topic).toBe(topic);
      expect(JSON.parse(text(command.payload)!)).toEqual(JSON.parse(JSON.stringify(payload)));
      expect(text(command.userProperties)).toBe('{"n":1}');
    },
  );

  test.each(['1,"topic":"other"', '1}\n{"cmd":"DISCONNECT"', '{},"cmd":"DISCONNECT"', "", "1,"])(
    "to publish cannot be turned into another one by the payload %j",
    (payload) => {
      const line = encodePublish("topic", bytes(payload), {});
      expect(line.indexOf("\n")).toBe(line.length - 1);
      const command = decodeCommand(line.subarray(0, -1));
      expect(command).toMatchObject(
        command.kind === "PUBLISH" ? { topic: "topic" } : { kind: "unreadable" },
      );
    },
  );

  test.each([
    ['{"cmd":"CONNECT"}', { kind: "CONNECT", clientId: undefined, subscriptions: [] }],
    ['{"cmd":"CONNECT","client_id":null}', { kind: "CONNECT", clientId: null }],
    ['{"cmd":"RECEIVE"}', { kind: "RECEIVE", timeoutMs: 5_000 }],
    ['{"cmd":"ACK","message_id":"x"}', { kind: "ACK" }],
    ['{"cmd":"PUBLISH","topic":""}', { kind: "incomplete", message: "Missing topic" }],
    ['{"cmd":"SUBSCRIBE"}', { kind: "incomplete", message: "Missing topic_pattern" }],
    ['{"cmd":"FOO"}', { kind: "incomplete", message: "Unknown command: FOO" }],
    ['{"cmd":5}', { kind: "incomplete", message: "Unknown command: 5" }],
    ["{}", { kind: "incomplete", message: "Unknown command: None" }],
    ["not json", { kind: "unreadable" }],
    ["", { kind: "unreadable" }],
    ['{"cmd":"FOO"', { kind: "unreadable" }],
    ["[".repeat(300), { kind: "unreadable", message: "nested deeper than 200 levels" }],
    ["[]", { kind: "fatal" }],
    ["5", { kind: "fatal" }],
    ['{"cmd":"CONNECT","client_id":5}', { kind: "fatal" }],
    ['{"cmd":"CONNECT","subscriptions":[{"topic":"a"}]}', { kind: "fatal" }],
    ['{"cmd":"PUBLISH","topic":5}', { kind: "fatal" }],
    ['{"cmd":"RECEIVE","timeout_ms":"100"}', { kind: "fatal" }],
  ])("%j is read as %j", (line, command) => {
    expect(decodeCommand(bytes(line))).toMatchObject(command);
  });

  test("that is not UTF-8 is fatal", () => {
    expect(decodeCommand(Buffer.from([0xff, 0xfe]))).toMatchObject({ kind: "fatal" });
  });

  test("to publish without payload or properties gets the original's defaults", () => {
    const command = decodeCommand(bytes('{"cmd":"PUBLISH","topic":"a"}'));
    if (command.kind !== "PUBLISH") throw new Error(command.kind);
    expect([text(command.payload), text(command.userProperties)]).toEqual(["null", "{}"]);
  });
});

describe("an answer", () => {
  test("is what the server encoded", () => {
    expect(decodeAnswer(encodeOk({ client_id: "w" }))).toEqual({ status: "OK" });
    expect(decodeAnswer(encodeTimeout())).toEqual({ status: "TIMEOUT" });
    expect(decodeAnswer(encodeError("INVALID_COMMAND", "why €"))).toEqual({
      status: "ERROR",
      code: "INVALID_COMMAND",
      message: "why €",
    });
  });

  test.prop([fc.string(), fc.jsonValue(), fc.dictionary(fc.string(), fc.string())])(
    "with a message gives it back",
    (topic, payload, properties) => {
      const line = encodeMessage("id-1", {
        topic,
        payload: bytes(JSON.stringify(payload)),
        userProperties: bytes(JSON.stringify(properties)),
      });
      const answer = decodeAnswer(line);
      if (answer.status !== "OK") throw new Error(answer.status);
      expect(answer.message).toMatchObject({ messageId: "id-1", topic });
      expect(answer.message?.userProperties).toEqual(properties);
      expect(text(answer.message?.payload)).toBe(JSON.stringify(payload));
    },
  );

  test("keeps the payload to the letter, also what is not JSON proper", () => {
    const payload = '{"n": [NaN, -Infinity, 12345678901234567890, 1.0]}';
    const answer = decodeAnswer(
      bytes(
        `{"status": "OK", "message": {"message_id": "1", "topic": "t", "payload": ${payload}, "user_properties": {"x": NaN}}}`,
      ),
    );
    if (answer.status !== "OK") throw new Error(answer.status);
    expect(text(answer.message?.payload)).toBe(payload);
    expect(answer.message?.userProperties).toEqual({ x: null });
  });

  test.each([
    "HTTP/1.1 400 Bad Request",
    "{}",
    '{"status":5}',
    '{"status":"OK","message":null}',
    '{"status":"OK","message":{"payload":1}}',
    '{"status":"OK","message":{"topic":"t"}}',
    '{"status":"OK","message":{"topic":"t","payload":1,"user_properties":{"a":}}}',
    `{"status":"OK","message":{"topic":"t","payload":1,"user_properties":[${"1,".repeat(2_000)}1]}}`,
  ])("%j is unreadable", (line) => {
    expect(decodeAnswer(bytes(line))).toMatchObject({ status: "UNREADABLE" });
  });

  test("without an object of user properties has none", () => {
    const line = '{"status":"OK","message":{"topic":"t","payload":1,"user_properties":null}}';
    expect(decodeAnswer(bytes(line))).toMatchObject({ message: { userProperties: {} } });
  });
});
