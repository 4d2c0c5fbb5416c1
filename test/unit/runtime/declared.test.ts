/**
 * Backends that are names only.
 */
import { describe, expect, test } from "vitest";
import { createFunctionGateway } from "../../../worker/gateway/functions.ts";
import { Runtime } from "../../../worker/runtime/api/runtime.ts";
import { declaredBackend, declaredKinds } from "../../../worker/runtime/declared.ts";
import { backendContract } from "../../../worker/runtime/testing.ts";

describe.each(declaredKinds)("the declared backend %s", (kind) => {
  const newBackend = () => declaredBackend(kind);
  const contract = { newBackend, expectedKind: kind, skipExecutionTests: true };
  for (const { name, run } of backendContract(contract)) test(name, run);

  test("says what to do instead", async () => {
    const runtime = new Runtime({ backends: { standard: newBackend() } });
    const request = { code: "1", profile: "standard", gateway: createFunctionGateway([]) } as const;
    await expect(runtime.execute(request)).rejects.toMatchObject({
      ...{ code: "RUNTIME_UNAVAILABLE", retryable: false, backend: kind, op: "select" },
      message: expect.stringMatching(/is not implemented: .*(remote|defineBackend)/),
    });
    expect(newBackend().readiness).toBe("stub");
  });
});
