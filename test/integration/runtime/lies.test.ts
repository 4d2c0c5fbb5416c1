/**
 * The exported contracts find out backends and gateways that lie.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ToolGateway } from "../../../worker/gateway/gateway.ts";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { limitKinds } from "../../../worker/runtime/api/limits.ts";
import type { ExecuteResult } from "../../../worker/runtime/api/result.ts";
import { backendContract, gatewayContract } from "../../../worker/runtime/testing.ts";
import { openUnsafeHost } from "../../../worker/runtime.ts";

/** Every limit, by the kernel. */
const everything = Object.fromEntries(limitKinds.map((kind) => [kind, "kernel"]));

/** Runs nothing, and says that all went well. */
const liar: RuntimeBackend = {
  ...{ kind: "liar", languages: ["javascript"], readiness: "production", evidence: everything },
  profiles: ["standard"],
  execute: () => Promise.resolve(success),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

const success: ExecuteResult = {
  ...{ value: true, stdout: "", stderr: "", toolCalls: [], durationMs: 0 },
  backend: { kind: "another", readiness: "production", details: {} },
  limitsEnforced: Object.fromEntries(
    limitKinds.map((kind) => [kind, true]),
  ) as ExecuteResult["limitsEnforced"],
  limitsEnforcedBy: everything,
};

describe("a backend that runs nothing", () => {
  const contract = { newBackend: () => liar, expectedKind: "honest" };
  test.each(backendContract(contract).map(({ name, run }) => ({ name, run })))(
    "is found out by: $name",
    async ({ run }) => {
      await expect(run()).rejects.toThrow();
    },
  );

  test("need not run code where that is not checked", () => {
    const names = backendContract({ ...contract, skipExecutionTests: true }).map(
      ({ name }) => name,
    );
    expect(names.length).toBeGreaterThan(5);
    expect(names.join()).not.toMatch(/network|process|values/);
  });
});

describe("a backend that says it isolates, and does not", () => {
  let host: RuntimeBackend;
  beforeAll(async () => {
    host = await openUnsafeHost({ languages: ["python"] });
  });
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
  });

  test.each([
    "shows code no file of the host",
    "gives code no network",
    "keeps the limit of pids if it says so",
    "keeps the limit of disk if it says so",
  ])("is found out by: %s", async (wanted) => {
    const claims = {
      ...host,
      evidence: everything,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    const checks = backendContract({
      ...{ newBackend: () => claims, expectedKind: "unsafe_host", language: "python" },
    });
    const check = checks.find(({ name }) => name === wanted);
    await expect(check!.run()).rejects.toThrow();
  });
});

describe("a gateway that does nothing", () => {
  const summary = { id: "a:b", name: "c", namespace: "a", shortDescription: "", tags: [] };
  const doc = { ...summary, summary: "", parameters: {}, notes: "" };
  const gateway: ToolGateway = {
    searchTools: () => Promise.resolve([summary, summary]),
    listNamespaces: () => Promise.resolve(["z", "a", "a"]),
    describeTool: () => Promise.resolve(doc),
    listToolExamples: () =>
      Promise.resolve([
        { description: "", args: {} },
        { description: "", args: {} },
      ]),
    runTool: (_, args) => {
      Object.assign(args, { changed: true });
      return Promise.resolve({ structured: {}, artifacts: [] });
    },
    runChain: () =>
      Promise.resolve({ structured: { a: 1 }, artifacts: [], stepResults: [{ toolId: "a" }] }),
  };
  test.each(gatewayContract({ newGateway: () => gateway }).map(({ name, run }) => ({ name, run })))(
    "is found out by: $name",
    async ({ run }) => {
      await expect(run()).rejects.toThrow();
    },
  );
});
