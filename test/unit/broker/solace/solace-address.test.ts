import { describe, expect, test } from "vitest";
import {
  isClearText,
  isEncrypted,
  parseSolaceHosts,
} from "../../../../worker/broker/solace/address.ts";

describe("the host of a Solace broker", () => {
  test.each([
    ["broker.example.com:55555", ["tcp://broker.example.com:55555"]],
    ["broker.example.com", ["tcp://broker.example.com:55555"]],
    ["broker:55443", ["tcps://broker:55443"]],
    ["tcp://broker:55443", ["tcp://broker:55443"]],
    ["tcps://broker", ["tcps://broker:55443"]],
    ["smf://broker", ["tcp://broker:55555"]],
    ["smfs://broker:1", ["tcps://broker:1"]],
    ["ws://broker:8008", ["ws://broker:8008"]],
    ["wss://broker/", ["wss://broker:443"]],
    ["[::1]:55555", ["tcp://[::1]:55555"]],
    ["tcps://[2001:db8::7]", ["tcps://[2001:db8::7]:55443"]],
    ["one, tcps://other:65535", ["tcp://one:55555", "tcps://other:65535"]],
  ])("%s is %j", (text, urls) => {
    expect(parseSolaceHosts(text)).toEqual(urls);
  });

  test.each([
    "",
    "tcp://",
    ":55555",
    "broker:",
    "broker:0",
    "broker:65536",
    "broker:port",
    "::1",
    "[broker]",
    "[::1",
    "http://broker",
    "amqp://broker",
    "constructor://broker",
    "TCP://broker",
    "user:password@broker",
    "tcp://user@broker",
    "tcp://broker/vpn",
    "tcp://broker?x=1",
    "two words",
    "one,,other",
    "one,",
    Array.from({ length: 17 }, (_, n) => `host${n}`).join(),
  ])("is not understood: %j", (text) => {
    expect(parseSolaceHosts(text)).toBeUndefined();
  });

  test.each([
    ["tcp://broker:1", true],
    ["ws://broker:1", true],
    ["tcps://broker:1", false],
    ["wss://broker:1", false],
    ["tcp://127.0.0.1:1", false],
    ["ws://[::1]:1", false],
    ["tcp://localhost:1", false],
    ["tcp://127.0.0.1.example.com:1", true],
  ])("%s lets others read: %s", (url, expected) => {
    expect(isClearText(["tcps://first:1", url])).toBe(expected);
  });

  test("is encrypted when every one of a list is", () => {
    expect(isEncrypted(["tcps://a:1", "wss://b:1"])).toBe(true);
    expect(isEncrypted(["tcps://a:1", "tcp://b:1"])).toBe(false);
  });
});
