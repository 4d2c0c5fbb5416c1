/**
 * Tools of other workers where there is no broker.
 */
import { expect, test } from "vitest";
import type { GatewayCall } from "../../../../worker/invocation/steps/gateway.ts";
import { withoutBroker } from "../../../../worker/runtime/remote/without-broker.ts";
import { parse } from "../../manifest/fixtures.ts";

test("a listed tool is known, and its calls fail for good", async () => {
  const text = "version: 1\ntools:\n  t: {module: m, function: f, gateway: {remote: [weather]}}\n";
  const { directory, call } = withoutBroker(parse(text).manifest);
  expect(directory.entries).toEqual([{ id: "weather" }]);
  const outer = {} as GatewayCall;
  const inner = { callId: "1", toolId: "weather", toolName: "weather", args: {}, depth: 1 };
  await expect(call(outer, inner, new AbortController().signal)).rejects.toMatchObject({
    code: "TOOL_NOT_AVAILABLE",
    message: "The tool weather is one of other workers, and there is no broker here",
    retryable: false,
  });
});
