/**
 * A far side that has another backend after it has restarted.
 */
import { expect, onTestFinished, test } from "vitest";
import { type BackendDefinition, defineBackend } from "../../../../worker/runtime/api/backend.ts";
import { createFunctionGateway } from "../../../../worker/runtime/api/function-gateway.ts";
import { openRemote } from "../../../../worker/runtime/service/remote.ts";
import { serveRuntime } from "../../../../worker/runtime/service/server.ts";
import { codeOf, scriptedDefinition } from "../../../support/runtime/scripted-backend.ts";

const request = { code: codeOf(["value", 1]), gateway: createFunctionGateway([]) };
const bounded = { ...request, limits: { memoryBytes: 1_000_000 } };
const required = { ...bounded, requireEnforced: ["memory", "memory", "timeout"] } as const;

/** A remote backend, whose far side has restarted with these changes. */
async function restarted(changes: Partial<BackendDefinition>) {
  const started: string[] = [];
  const definition = scriptedDefinition(
    (event) => void (event === "started" && started.push(event)),
  );
  const former = await serveRuntime({ backend: defineBackend(definition), port: 0 });
  const { port } = former;
  const backend = await openRemote({ url: `ws://127.0.0.1:${port}` });
  onTestFinished(() => backend[Symbol.asyncDispose]());
  expect((await backend.execute(required)).value).toBe(1);
  await former[Symbol.asyncDispose]();
  const weaker = defineBackend({ ...definition, ...changes });
  const service = await serveRuntime({ backend: weaker, port });
  onTestFinished(() => service[Symbol.asyncDispose]());
  started.length = 0;
  return { backend, started };
}

test("a limit that it does not keep any more is refused by it, with nothing started", async () => {
  const { backend, started } = await restarted({ evidence: {} });
  await expect(backend.execute(required)).rejects.toMatchObject({
    ...{ code: "RUNTIME_UNAVAILABLE", op: "select", retryable: false },
    message: expect.stringContaining("was not seen to keep") as string,
  });
  expect(started).toEqual([]);
});

test("results tell of the limits that it keeps now", async () => {
  const { backend } = await restarted({ evidence: { memory: "guard" } });
  const { limitsEnforcedBy } = await backend.execute(required);
  expect(limitsEnforcedBy).toMatchObject({ memory: "guard" });
  const { backend: other } = await restarted({ evidence: {} });
  expect((await other.execute(bounded)).limitsEnforced.memory).toBe(false);
});

test("another kind of backend is refused, with nothing started", async () => {
  const { backend, started } = await restarted({ kind: "unsafe_host" });
  await expect(backend.execute(request)).rejects.toMatchObject({
    ...{ code: "RUNTIME_UNAVAILABLE", op: "select", retryable: false },
    message: expect.stringContaining("another backend than when it was opened") as string,
  });
  expect(started).toEqual([]);
});
