import solace from "solclientjs";
import { describe, expect, test } from "vitest";
import { missingCapability } from "../../../../worker/broker/solace/login.ts";
import { library } from "../../../../worker/broker/solace/library/library.ts";
import {
  deliveryCountOf,
  payloadOf,
  propertiesOf,
  toMessage,
} from "../../../../worker/broker/solace/messages.ts";

library({ info: () => {}, warn: () => {} });
const { SDTField, SDTFieldType, SolclientFactory } = solace;

describe("a message of ours", () => {
  const payload = Buffer.from('"€"');
  const message = toMessage(
    { topic: "a/b", payload, properties: { text: "é", n: 1, huge: 2 ** 50, half: 0.5, is: true } },
    1_795_200_128_599,
  );

  test("carries its bytes as a binary attachment", () => {
    expect(message.getType()).toBe(solace.MessageType.BINARY);
    expect(Buffer.from(payloadOf(message) ?? "")).toEqual(payload);
  });

  test("carries a part of a larger buffer", () => {
    const part = toMessage({ topic: "a", payload: Buffer.from("abc").subarray(1, 2) }, 0);
    expect(Buffer.from(payloadOf(part) ?? "").toString()).toBe("b");
  });

  test("lives as long as it is worth keeping, and without end unless told", () => {
    const asked = toMessage({ topic: "a", payload, timeToLiveSeconds: 40 }, 0);
    expect([asked.getTimeToLive(), asked.isDMQEligible()]).toEqual([40_000, false]);
    expect(message.getTimeToLive() ?? 0).toBe(0);
  });

  test("is kept as a dead letter where it is worth keeping", () => {
    expect(message.isDMQEligible()).toBe(true);
  });

  test("has properties in the types of Python peers, and the time", () => {
    const map = message.getUserPropertyMap();
    const types = map?.getKeys().map((key) => [key, map.getField(key).getType()]);
    expect(types).toEqual([
      ["text", SDTFieldType.STRING],
      ["n", SDTFieldType.INT64],
      ["huge", SDTFieldType.DOUBLETYPE],
      ["half", SDTFieldType.DOUBLETYPE],
      ["is", SDTFieldType.BOOL],
      ["timestamp", SDTFieldType.INT64],
    ]);
    expect(propertiesOf(message)).toEqual({
      text: "é",
      n: "1",
      huge: "1125899906842624",
      half: "0.5",
      is: "true",
      timestamp: "1795200128599",
    });
  });
});

describe("a message of a peer", () => {
  test("that was never handed out has no count", () => {
    expect(deliveryCountOf(SolclientFactory.createMessage())).toBeUndefined();
  });

  test("without properties and payload has none", () => {
    const message = SolclientFactory.createMessage();
    expect(propertiesOf(message)).toEqual({});
    expect(payloadOf(message)).toHaveLength(0);
  });

  test("was sent when its properties say, else when the library has sent it", () => {
    const message = SolclientFactory.createMessage();
    message.setSenderTimestamp(1_795_200_128_599);
    expect(propertiesOf(message)).toEqual({ timestamp: "1795200128599" });
    const map = new solace.SDTMapContainer();
    map.addField("timestamp", SDTField.create(SDTFieldType.STRING, "1795200000000"));
    message.setUserPropertyMap(map);
    expect(propertiesOf(message)).toEqual({ timestamp: "1795200000000" });
  });

  test("has bytes as text", () => {
    const message = SolclientFactory.createMessage();
    const map = new solace.SDTMapContainer();
    map.addField("bytes", SDTField.create(SDTFieldType.BYTEARRAY, Buffer.from("é")));
    message.setUserPropertyMap(map);
    expect(propertiesOf(message)).toEqual({ bytes: "é" });
  });
});

describe("a broker", () => {
  const { GUARANTEED_MESSAGE_PUBLISH, AD_APP_ACK_FAILED } = solace.CapabilityType;

  test.each([
    [GUARANTEED_MESSAGE_PUBLISH, /send guaranteed messages/],
    [AD_APP_ACK_FAILED, /version 10\.2\.1/],
  ])("that lacks capability %i is told what", (lacking, expected) => {
    expect(missingCapability((capability) => capability !== lacking)).toMatch(expected);
  });

  test("that lacks nothing is told nothing", () => {
    expect(missingCapability(() => true)).toBeUndefined();
  });
});
