/**
 * The threads of the wasm backend: how many there are, who waits for them, how they end.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { maxWaitingExecutions } from "../../../worker/runtime/wasm/limits.ts";
import { openWasm } from "../../../worker/runtime/wasm/open.ts";
import { gatewayOf } from "../../support/gateway/raw-program.ts";
import { execute, failure } from "../../support/runtime/programs.ts";

/** A tool that programs wait in until the test lets them go. */
function gate() {
  const opened = Promise.withResolvers<object>();
  let [inside, most] = [0, 0];
  const entered = Promise.withResolvers<void>();
  const run = async () => {
    most = Math.max(most, ++inside);
    entered.resolve();
    await opened.promise;
    inside--;
    return {};
  };
  return {
    gateway: gatewayOf({ id: "wait", run }),
    entered: entered.promise,
    open: () => opened.resolve({}),
    most: () => most,
  };
}

it("run 50 programs at once, a few at a time", { tags: "full" }, async () => {
  await using wasm = await openWasm({ maxThreads: 3 });
  let [running, most] = [0, 0];
  const run = async () => {
    most = Math.max(most, ++running);
    await new Promise((go) => setTimeout(go, 2));
    running--;
    return {};
  };
  const gateway = gatewayOf({ id: "step", run });
  const all = Array.from({ length: 50 }, (_, n) =>
    execute(wasm, `await tools.call("step"); ${n} * 2`, { gateway }),
  );
  const values = (await Promise.all(all)).map(({ value }) => value);
  expect(values).toEqual(Array.from({ length: 50 }, (_, n) => n * 2));
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(3);
});

it("go on with the next after programs that had to be ended", { tags: "full" }, async () => {
  await using wasm = await openWasm({ maxThreads: 2 });
  const codes = ["for (;;);", "const a = []; for (;;) a.push([1])", "1 + 1", "throw 1"];
  const limits = [{ cpuQuotaMillis: 50 }, { memoryBytes: 2 ** 24 }, {}, {}];
  const all = Array.from({ length: 12 }, (_, n) =>
    execute(wasm, codes[n % 4]!, { limits: limits[n % 4]! }).then(
      ({ value }) => value,
      (error: { code: string }) => error.code,
    ),
  );
  const ends = await Promise.all(all);
  expect(ends.slice(0, 4)).toEqual(["RESOURCE_LIMIT", "RESOURCE_LIMIT", 2, "EXECUTION_FAILED"]);
  expect(ends.slice(8)).toEqual(ends.slice(0, 4));
});

it("are waited for with the signal and within the time", async () => {
  await using wasm = await openWasm({ maxThreads: 1 });
  const held = gate();
  const first = execute(wasm, "await tools.wait(); 1", { gateway: held.gateway });
  await held.entered;
  const over = new AbortController();
  const waiting = execute(wasm, "2", {}, { signal: over.signal });
  const late = failure(execute(wasm, "3", { timeoutMs: 50 }));
  over.abort(new Error("gave up"));
  await expect(waiting).rejects.toThrow("gave up");
  expect((await late).code).toBe("TIMEOUT");
  held.open();
  expect((await first).value).toBe(1);
  expect((await execute(wasm, "4")).value).toBe(4);
});

it("are waited for by a bounded number of executions", { tags: "full" }, async () => {
  await using wasm = await openWasm({ maxThreads: 1 });
  const held = gate();
  const first = execute(wasm, "await tools.wait(); 1", { gateway: held.gateway });
  await held.entered;
  const over = new AbortController();
  const waiting = Array.from({ length: maxWaitingExecutions }, () =>
    execute(wasm, "2", held, { signal: over.signal }),
  );
  const settled = Promise.allSettled(waiting);
  const error = await failure(execute(wasm, "3"));
  expect(error).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: true });
  over.abort(new Error("enough"));
  expect((await settled).every(({ status }) => status === "rejected")).toBe(true);
  held.open();
  expect((await first).value).toBe(1);
});

it("take engines of any bound of memory", { tags: "full" }, async () => {
  await using wasm = await openWasm({ maxThreads: 1 });
  const fill =
    "let n = 0; const a = []; try { for (;;) { a.push(new Uint8Array(2 ** 16)); n++ } } catch {} n";
  for (const mebibytes of [4, 8, 4, 16, 12, 24, 32, 4]) {
    const limits = { memoryBytes: mebibytes * 2 ** 20 };
    const { value } = await execute(wasm, fill, { limits });
    expect(Number(value)).toBeLessThanOrEqual(mebibytes * 16);
    expect(Number(value)).toBeGreaterThan((mebibytes - 3.5) * 14);
  }
});

it("end with the backend, and programs with them", async () => {
  const wasm = await openWasm({ maxThreads: 1 });
  const held = gate();
  const running = failure(execute(wasm, "await tools.wait()", { gateway: held.gateway }));
  await held.entered;
  await wasm[Symbol.asyncDispose]();
  expect((await running).code).toBe("RUNTIME_UNAVAILABLE");
  expect((await failure(execute(wasm, "1"))).code).toBe("RUNTIME_UNAVAILABLE");
});

it("keep no process alive that has forgotten them", { tags: "full" }, async () => {
  const code = `
    import { openWasm } from "${import.meta.resolve("../../../worker/runtime/wasm/open.ts")}";
    import { createFunctionGateway } from "${import.meta.resolve("../../../worker/gateway/functions.ts")}";
    const wasm = await openWasm();
    const waits = "await new Promise((go) => setTimeout(go, 50)); 5";
    const { value } = await wasm.execute({ code: waits, gateway: createFunctionGateway([]) });
    console.log(value);`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--input-type=module",
    "-e",
    code,
  ]);
  expect(stdout).toBe("5\n");
});

it("are not opened after an abort", async () => {
  const signal = AbortSignal.abort(new Error("not now"));
  await expect(openWasm({ signal })).rejects.toThrow("not now");
});
