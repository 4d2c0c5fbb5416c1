/**
 * A backend over sandboxes: what is not the same for all backends.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { createFunctionGateway } from "../../../worker/runtime/api/function-gateway.ts";
import { checkGateway } from "../../../worker/runtime/testing/tools.ts";
import { openBubblewrap } from "../../../worker/runtime.ts";

let backend: RuntimeBackend;
beforeAll(async () => {
  backend = await openBubblewrap();
});
afterAll(async () => {
  await backend[Symbol.asyncDispose]();
});

const gateway = checkGateway();

test("the limits of this host are seen to be kept", () => {
  expect(Object.keys(backend.evidence).sort()).toEqual([
    "chainSteps",
    "cpu",
    "disk",
    "memory",
    "pids",
    "timeout",
    "toolCalls",
  ]);
});

test("code of a tool can execute code, on one slot", { tags: "full" }, async () => {
  await using one = await openBubblewrap({ maxConcurrent: 1, languages: ["python"] });
  const nested = createFunctionGateway([
    {
      id: "code:run",
      run: async ({ code }) => {
        const { value } = await one.execute({ code: code as string, gateway });
        return { value };
      },
    },
  ]);
  const inner = "__out = (await tools.call('math:add', {'a': 1, 'b': 2}))['sum']";
  const code = `__out = (await tools.call("code:run", {"code": ${JSON.stringify(inner)}}))["value"]`;
  const results = await Promise.all([1, 2, 3].map(() => one.execute({ code, gateway: nested })));
  expect(results.map(({ value }) => value)).toEqual([3, 3, 3]);
});

test(
  "a gateway serves more calls than one execution may make, and survives its refusals",
  { tags: "full" },
  async () => {
    const refused = `
made = 0
for _ in range(200):
    try:
        await tools.call("no:tool", {})
    except Exception:
        made += 1
__out = made`;
    const ended = backend.execute({ code: refused, gateway, language: "python" });
    await expect(ended).rejects.toMatchObject({ code: "RESOURCE_LIMIT" });
    const code = `for n in range(120): await tools.call("math:add", {"a": n, "b": 1})\n__out = n`;
    const { value } = await backend.execute({ code, gateway, language: "python" });
    expect(value).toBe(119);
  },
);

test("a larger limit than the profile's is the profile's", async () => {
  const code = "import resource\n__out = resource.getrlimit(resource.RLIMIT_NOFILE)[0]";
  const limits = { pidsMax: 1_000_000, memoryBytes: 2 ** 50, diskBytes: 2 ** 50 };
  const request = { gateway, language: "python", limits };
  expect((await backend.execute({ ...request, code })).value).toBe(512);
  const bytes = "import resource\n__out = resource.getrlimit(resource.RLIMIT_AS)[0]";
  expect((await backend.execute({ ...request, code: bytes })).value).toBe(1024 * 1024 * 1024);
  const hardened = await backend.execute({ ...request, code: bytes, profile: "hardened" });
  expect(hardened.value).toBe(512 * 1024 * 1024);
});

test("the longest time is no shorter one", async () => {
  const code = "import time\ntime.sleep(0.2)\n__out = 1";
  const timeoutMs = 2 ** 31 - 1;
  const { value } = await backend.execute({ code, gateway, language: "python", timeoutMs });
  expect(value).toBe(1);
});

test("a backend that is closed ends what runs, and starts nothing", async () => {
  const closing = await openBubblewrap({ languages: ["python"] });
  const started = Promise.withResolvers<void>();
  const notes = createFunctionGateway([
    {
      id: "it:runs",
      run: () => {
        started.resolve();
        return {};
      },
    },
  ]);
  const code = `await tools.call("it:runs", {})\nimport time\ntime.sleep(60)`;
  const running = closing.execute({ code, gateway: notes });
  const ended = expect(running).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
  await started.promise;
  await closing[Symbol.asyncDispose]();
  await ended;
  await expect(closing.execute({ code: "1", gateway })).rejects.toMatchObject({
    ...{ code: "RUNTIME_UNAVAILABLE", retryable: false },
  });
});

test("a host without the sandbox program says which backend cannot be used", async () => {
  const opening = openBubblewrap({ variables: { SANDBOX_BWRAP_BIN: "/usr/bin/no-such-bwrap" } });
  await expect(opening).rejects.toMatchObject({
    ...{ code: "RUNTIME_UNAVAILABLE", op: "open", backend: "bubblewrap" },
  });
});

test("code that the end of its time does not stop calls no tools any more", async () => {
  let calls = 0;
  const counting = createFunctionGateway([
    {
      id: "it:counts",
      run: () => {
        calls++;
        return {};
      },
    },
  ]);
  const code = [
    "import signal",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "while True:",
    "    try:",
    "        tools.sync.call('it:counts', {})",
    "    except Exception:",
    "        pass",
  ].join("\n");
  const abandoned = new AbortController();
  const options = { signal: abandoned.signal };
  const running = backend.execute({ code, gateway: counting, language: "python" }, options);
  const ended = expect(running).rejects.toBe("not wanted");
  await vi.waitFor(() => expect(calls).toBeGreaterThan(3));
  abandoned.abort("not wanted");
  const until = calls;
  await ended;
  expect(calls).toBe(until);
});

test("what was printed and what was refused is of the code, and no fault of the runtime", async () => {
  const gone = backend.execute({ code: "import os\nos._exit(0)", gateway, language: "python" });
  await expect(gone).rejects.toMatchObject({ code: "EXECUTION_FAILED", retryable: false });
  const long = backend.execute({ code: "#".repeat(256 * 1024 + 1), gateway });
  await expect(long).rejects.toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "code" } });
});
