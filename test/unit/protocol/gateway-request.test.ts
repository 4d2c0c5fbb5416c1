/**
 * `params.gateway` of a request.
 */
import { expect, test } from "vitest";
import { gatewayRequest } from "../../../worker/protocol/messages/gateway-request.ts";
import { gatewayLimitKeys } from "../../../worker/protocol/tool-calls/limits.ts";

test("a request names every bound that a manifest does", () => {
  const keys = Object.keys(gatewayLimitKeys);
  const given = Object.fromEntries(keys.map((key, at) => [key, at + 1]));
  const limits = Object.fromEntries(
    Object.values(gatewayLimitKeys).map((name, at) => [name, at + 1]),
  );
  expect(gatewayRequest.parse(given)).toMatchObject({ limits });
});

test.each(["max_concurrent_calls", "max_operations_per_second"])(
  "a request may not have its tool wait for ever, by %s of none",
  (key) => {
    expect(gatewayRequest.safeParse({ [key]: 0 }).success).toBe(false);
    expect(gatewayRequest.safeParse({ [key]: 1 }).success).toBe(true);
  },
);
