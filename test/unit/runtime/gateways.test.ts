/**
 * The gateway of a call before its tool has sent anything.
 */
import { Duplex } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { GatewayCall } from "../../../worker/invocation/steps/gateway.ts";
import { createGateways, type GatewaysParts } from "../../../worker/runtime/gateways.ts";
import { systemClock } from "../../../worker/support/clock.ts";

function newScene() {
  const channel = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const abuses: string[] = [];
  const parts = {
    clock: systemClock,
    tools: { snapshot: () => ({ remote: new Set() }) },
    scopeOf: () => {
      throw new Error("nobody's artifacts");
    },
  } as unknown as GatewaysParts;
  const call = {
    channel,
    ...{ tool: {}, invocation: {}, context: {} },
    onAbuse: () => abuses.push("ended"),
  } as unknown as GatewayCall;
  return { channel, abuses, gateway: createGateways(parts).open(call) };
}

describe("a gateway that nothing is asked of", () => {
  test("reports no calls, and takes none when it is closed", async () => {
    const { channel, abuses, gateway } = newScene();
    expect(await gateway.close()).toEqual({ report: { calls: [], omittedCalls: 0 } });
    channel.push("{");
    await nextTurn();
    expect(abuses).toEqual([]);
    expect(channel.listenerCount("readable")).toBe(0);
  });

  test("is no worse for a channel that is lost", async () => {
    const { channel, gateway } = newScene();
    channel.destroy(new Error("reset"));
    await nextTurn();
    expect(await gateway.close()).toEqual({ report: { calls: [], omittedCalls: 0 } });
  });
});

test("a gateway that cannot be made ends its tool, and fails its call", async () => {
  const { channel, abuses, gateway } = newScene();
  channel.push("{");
  await nextTurn();
  expect(abuses).toEqual(["ended"]);
  await expect(gateway.close()).rejects.toMatchObject({
    code: "INTERNAL_ERROR",
    cause: new Error("nobody's artifacts"),
  });
  await gateway[Symbol.asyncDispose]();
  expect(channel.destroyed).toBe(true);
});
