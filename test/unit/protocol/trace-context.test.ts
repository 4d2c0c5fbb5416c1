import { describe, expect, test } from "vitest";
import { readReplyAddress } from "../../../worker/protocol/messages/request.ts";
import {
  maxTracestateLength,
  maxTracestateMembers,
  readTracestate,
} from "../../../worker/protocol/trace-context.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

const membersOf = (count: number) => Array.from({ length: count }, (_, at) => `k${at}=v`).join();

describe("the state of a trace", () => {
  test.each([
    "rojo=00f067aa0ba902b7",
    "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
    "fw529a3039@dt=FfAAAAAA;x y:z",
    "0a_-*/@b= !~",
    " a=1 ,\t, b=2\t",
    membersOf(maxTracestateMembers),
    `a=${"x".repeat(256)},b=${"x".repeat(maxTracestateLength - 261)}`,
  ])("is passed on as it is: %j", (tracestate) => {
    expect(readTracestate({ traceparent, tracestate })).toBe(tracestate);
    expect(readReplyAddress({ replyTo: "r", traceparent, tracestate })).toMatchObject({
      tracestate,
    });
  });

  test.each([
    ["has no member", ""],
    ["has only empty members", " ,,\t"],
    ["has a member without a value", "a"],
    ["has an empty value", "a="],
    ["has an empty key", "=a"],
    ["has a key in capitals", "A=1"],
    ["has a key that begins with no letter or digit", "@a=1"],
    ["has a key that is too long", `${"a".repeat(257)}=1`],
    ["has a value that is too long", `a=${"x".repeat(257)}`],
    ["has a value with an equals sign", "a=b=c"],
    ["has a value that is not ASCII", "a=é"],
    ["has a control character", "a=b\n"],
    ["has a key twice", "a=1,b=2,a=3"],
    ["has too many members", membersOf(maxTracestateMembers + 1)],
    ["is too long", `a=${"x".repeat(256)},b=${"x".repeat(maxTracestateLength - 260)}`],
  ])("is dropped if it %s", (_, tracestate) => {
    expect(readTracestate({ traceparent, tracestate })).toBeUndefined();
  });

  test("is dropped without a valid trace context", () => {
    expect(readTracestate({ tracestate: "a=1" })).toBeUndefined();
    expect(readTracestate({ traceparent: "00-1", tracestate: "a=1" })).toBeUndefined();
  });
});
