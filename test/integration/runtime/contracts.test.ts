/**
 * The exported contracts, held by what runs code on every machine.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { backendContract, gatewayContract } from "../../../worker/runtime/testing.ts";
import { checkGateway } from "../../../worker/runtime/testing/tools.ts";
import { openBubblewrap, openUnsafeHost } from "../../../worker/runtime.ts";

const checked = [
  { kind: "bubblewrap", language: "python", open: openBubblewrap, tags: [] },
  { kind: "bubblewrap", language: "javascript", open: openBubblewrap, tags: ["full"] },
  { kind: "unsafe_host", language: "python", open: openUnsafeHost, tags: ["full"] },
  { kind: "unsafe_host", language: "javascript", open: openUnsafeHost, tags: ["full"] },
];

for (const { kind, language, open, tags } of checked) {
  describe(`the backend ${kind}, in ${language}`, { tags }, () => {
    let backend: RuntimeBackend;
    beforeAll(async () => {
      backend = await open();
    });
    afterAll(async () => {
      await backend[Symbol.asyncDispose]();
    });

    // One for all checks: each opens and closes a view of it.
    const newBackend = (): RuntimeBackend => ({
      ...backend,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
    const isUnsafe = kind === "unsafe_host";
    const contract = { newBackend, expectedKind: kind, language, isUnsafe };
    for (const { name, run } of backendContract(contract)) test(name, run);
  });
}

describe("a gateway over functions", () => {
  for (const { name, run } of gatewayContract({ newGateway: checkGateway })) test(name, run);
});
