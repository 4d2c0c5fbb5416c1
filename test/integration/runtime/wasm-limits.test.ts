/**
 * What programs in the wasm backend cannot exceed: memory, time, depth, output, calls.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ToolGateway } from "../../../worker/gateway/gateway.ts";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { Engines } from "../../../worker/runtime/wasm/engine.ts";
import {
  leastMemoryBytes,
  maxMessageBytes,
  maxRequestsAtOnce,
  maxStreamBytes,
} from "../../../worker/runtime/wasm/limits.ts";
import { openWasm } from "../../../worker/runtime/wasm/open.ts";
import { gatewayOf } from "../../support/gateway/raw-program.ts";
import { execute, failure } from "../../support/runtime/programs.ts";
import { maxCodeBytes } from "../../../worker/protocol/tool-calls/program-limits.ts";

const mebibyte = 1024 * 1024;

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): void;
}

/** The types of Node have no wasm. */
declare const WebAssembly: {
  readonly Instance: new (
    module: object,
    imports: object,
  ) => {
    readonly exports: { readonly memory: Memory };
  };
};

let wasm: RuntimeBackend;
beforeAll(async () => {
  wasm = await openWasm({ maxThreads: 2 });
});
afterAll(() => wasm[Symbol.asyncDispose]());

it("are seen to be kept when the backend is opened", async () => {
  expect(wasm.evidence).toMatchObject({
    ...{ memory: "engine", cpu: "guard", pids: "absent", disk: "absent", timeout: "guard" },
  });
  const limits = { memoryBytes: 32 * mebibyte, cpuQuotaMillis: 5_000, pidsMax: 1, diskBytes: 1 };
  const requireEnforced = ["memory", "cpu", "pids", "disk"] as const;
  const { limitsEnforcedBy } = await execute(wasm, "1", { limits, requireEnforced });
  expect(limitsEnforcedBy).toMatchObject({ memory: "engine", pids: "absent" });
});

describe("memory", () => {
  const limits = { memoryBytes: 16 * mebibyte };

  type FillingCase = readonly [what: string, code: string];

  const usual: readonly FillingCase[] = [
    ["arrays", "const a = []; for (;;) a.push([1, 2, 3])"],
    ["one allocation", "new ArrayBuffer(2 ** 30)"],
    ["promises", "const a = []; for (;;) a.push(new Promise(() => {}))"],
    ["a large JSON", "JSON.parse('[' + '1,'.repeat(3e6) + '1]')"],
    ["a shared buffer", "const a = []; for (;;) a.push(new SharedArrayBuffer(65_536))"],
  ];
  const others: readonly FillingCase[] = [
    ["strings", "const a = []; for (let i = 0; ; i++) a.push('x'.repeat(100) + i)"],
    ["typed arrays", "const a = []; for (;;) a.push(new Uint8Array(65_536))"],
    ["objects", "const a = []; for (let i = 0; ; i++) a.push({ i, b: {} })"],
    ["a long string", "'x'.repeat(2 ** 28)"],
    ["a map", "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})"],
    ["keys", "const o = {}; for (let i = 0; ; i++) o['k' + i] = i"],
    ["closures", "const a = []; for (;;) a.push(() => a)"],
    [
      "async functions",
      "const a = []; async function f() { await new Promise(() => {}) } for (;;) a.push(f())",
    ],
    ["jobs", "for (;;) Promise.resolve().then(() => {})"],
    ["errors", "const a = []; for (;;) a.push(new Error('x'))"],
    ["a regular expression", "/^(?:(.)(?=\\1?))*$/.test('x'.repeat(3e6))"],
  ];
  const isBounded = async ([, code]: FillingCase): Promise<void> => {
    const error = await failure(execute(wasm, code, { limits }));
    expect(error).toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "memory" } });
  };

  it.for(usual)("bounds %s", isBounded);
  it.for(others)("bounds %s", { tags: "full" }, isBounded);

  it.each([
    [
      "an error of that name",
      "throw Object.assign(new Error('out of memory'), { name: 'InternalError' })",
    ],
    [
      "an error of that class",
      "class InternalError extends Error {} throw new InternalError('out of memory')",
    ],
    ["the engine's own class", "throw new InternalError('out of memory')"],
    [
      "what it is made by",
      "try { new ArrayBuffer(2 ** 30) } catch (e) { throw new e.constructor('out of memory') }",
    ],
    ["text", "throw 'InternalError: out of memory'"],
    ["null", "throw null"],
    [
      "a callback's",
      "queueMicrotask(() => { throw Object.assign(new Error('out of memory'), { name: 'InternalError' }) }); await new Promise((r) => setTimeout(r, 5))",
    ],
  ])("is not what a program lacks that throws %s", async (_, code) => {
    const error = await failure(execute(wasm, code, { limits }));
    expect(error).toMatchObject({ code: "EXECUTION_FAILED" });
  });

  it.each([
    ["caught and thrown again", "try { new ArrayBuffer(2 ** 30) } catch (e) { throw e }"],
    [
      "a callback's",
      "queueMicrotask(() => new ArrayBuffer(2 ** 30)); await new Promise((r) => setTimeout(r, 5))",
    ],
    ["a timer's", "setTimeout(() => new ArrayBuffer(2 ** 30)); await new Promise(() => {})"],
    ["a rejection's", "await Promise.resolve().then(() => new ArrayBuffer(2 ** 30))"],
  ])("is what a program lacks by an error that is %s", async (_, code) => {
    const error = await failure(execute(wasm, code, { limits }));
    expect(error).toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "memory" } });
  });

  it("of the process does not grow with programs that fill theirs", { tags: "full" }, async () => {
    const fill =
      "const a = []; try { for (;;) a.push(new Uint8Array(65_536).fill(1)) } catch {} null";
    await execute(wasm, fill);
    const before = process.memoryUsage.rss();
    for (let count = 0; count < 8; count++) await execute(wasm, fill);
    expect(process.memoryUsage.rss() - before).toBeLessThan(3 * 64 * mebibyte);
  });

  it("has its maximum in the engine itself, whatever that counts", async () => {
    const engines = await Engines.load();
    const { module } = await engines.of(limits.memoryBytes + 1);
    const ignore = new Proxy({}, { get: () => () => 0 });
    const { exports } = new WebAssembly.Instance(module, new Proxy({}, { get: () => ignore }));
    const { memory } = exports;
    const pages = limits.memoryBytes / 65_536 - memory.buffer.byteLength / 65_536;
    memory.grow(pages);
    expect(() => memory.grow(1)).toThrow(RangeError);
  });

  it("cannot be stretched by holes", { tags: "full" }, async () => {
    const code = `
      let kept = [];
      for (let size = 16; size < 2 ** 20; size *= 2) {
        const filled = [];
        try { for (;;) filled.push("x".repeat(size) + filled.length) } catch {}
        kept = filled.filter((_, index) => index % 2 === 0);
      }
      kept.length`;
    const before = process.memoryUsage.rss();
    await execute(wasm, code, { limits }).catch(() => undefined);
    expect(process.memoryUsage.rss() - before).toBeLessThan(3 * 16 * mebibyte);
  });

  it("that the program catches lets it go on", async () => {
    const code =
      "let a = []; try { for (;;) a.push(new Uint8Array(65_536)) } catch (error) { a = null; __out = error.message }";
    expect((await execute(wasm, code, { limits })).value).toBe("out of memory");
  });

  it("below what the engine needs runs nothing", async () => {
    const least = { memoryBytes: leastMemoryBytes };
    expect((await execute(wasm, "console.log(1); 1", { limits: least })).value).toBe(1);
    const less = { memoryBytes: leastMemoryBytes - 1 };
    const error = await failure(execute(wasm, "1", { limits: less }));
    expect(error).toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "memory" } });
  });

  it("beyond what the engine addresses is what it addresses", async () => {
    expect((await execute(wasm, "1", { limits: { memoryBytes: 2 ** 40 } })).value).toBe(1);
  });
});

describe("depth", { tags: "full" }, () => {
  it.each([
    ["of functions", "function f(n) { return f(n + 1) + 1 } f(0)"],
    ["of parentheses", "eval('('.repeat(50_000) + '1' + ')'.repeat(50_000))"],
    ["of JSON", "JSON.parse('['.repeat(200_000) + ']'.repeat(200_000))"],
    ["of a regular expression", "new RegExp('(?:'.repeat(50_000) + ')'.repeat(50_000))"],
    ["of toString", "let a = []; for (let i = 0; i < 100_000; i++) a = [a]; String(a)"],
    ["of proxies", "let p = {}; for (let i = 0; i < 100_000; i++) p = new Proxy(p, {}); p.x"],
    ["of getters", "const o = { get x() { return this.x } }; o.x"],
    ["of comparisons", "function s() { [2, 1].sort(() => s()) } s()"],
    ["of replacements", "function r() { 'a'.replace(/a/, r) } r()"],
    ["of toJSON", "const o = { toJSON: () => JSON.stringify(o) }; JSON.stringify(o)"],
    ["of templates", "eval('`${'.repeat(20_000) + '1' + '}`'.repeat(20_000))"],
    ["of classes", "eval('class A extends ('.repeat(10_000) + 'Object' + '){}'.repeat(10_000))"],
  ])("%s ends in an error that the program can catch", async (_, code) => {
    const error = await failure(execute(wasm, code));
    expect(error.code).toBe("EXECUTION_FAILED");
    expect(error.message).toMatch(/Program threw (Range|Syntax|Internal)Error/);
    expect((await execute(wasm, `try { ${code} } catch { __out = 'caught' }`)).value).toBe(
      "caught",
    );
  });

  it.each(["typescript", "javascript"])("of a source in %s ends in an error", async (language) => {
    const code = `${"(".repeat(100_000)}1${")".repeat(100_000)}`;
    expect((await failure(execute(wasm, code, { language }))).code).toBe("EXECUTION_FAILED");
    // Not by a thread whose stripper is broken.
    for (let count = 0; count < 3; count++) {
      expect((await execute(wasm, "1 as number", {})).value).toBe(1);
    }
  });
});

describe("time", () => {
  it.for([
    ["a loop", "for (;;);"],
    ["a loop that catches", "for (;;) try { for (;;); } catch {} finally { continue }"],
    [
      "a loop of jobs",
      "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})",
    ],
    ["powers", "let b = 3n ** 200_000n; for (;;) b * b"],
    ["sorts", "const a = Array.from({ length: 1e5 }, (_, i) => -i); for (;;) a.slice().sort()"],
    ["a regular expression", "/^(a+)+$/.test('a'.repeat(40) + 'b')"],
    ["JSON", "const a = '[' + '1,'.repeat(5e5) + '1]'; for (;;) JSON.parse(a)"],
    ["a value's getter", "__out = { get a() { for (;;); } }"],
    [
      "an error's getter",
      "throw Object.defineProperty(new Error(), 'message', { get() { for (;;); } })",
    ],
    // Each that finds no memory rejects, and the loop goes on.
    ["a flood of calls", "for (;;) tools.text.echo({})"],
  ] as const)("ends %s", { tags: "full" }, async ([, code]) => {
    // Of the processor, which does not depend on how busy the host is; the end is the same.
    const limits = { cpuQuotaMillis: 80 };
    const error = await failure(execute(wasm, `console.log("began"); ${code}`, { limits }));
    expect(error).toMatchObject({ data: { limit: "cpu" }, partial: { stdout: "began\n" } });
  });

  it.each(["for (;;);", "await new Promise((go) => setTimeout(go, 1e9))"])(
    "of the request ends %s",
    async (code) => {
      await execute(wasm, "1");
      const timed = { timeoutMs: 1_500 };
      const error = await failure(execute(wasm, `console.log("began"); ${code}`, timed));
      expect(error).toMatchObject({ code: "TIMEOUT", partial: { stdout: "began\n" } });
    },
  );

  it("of the processor is looked at, and not that of waits", async () => {
    const limits = { cpuQuotaMillis: 60 };
    const error = await failure(execute(wasm, "console.log(1); for (;;);", { limits }));
    expect(error).toMatchObject({
      ...{ code: "RESOURCE_LIMIT", data: { limit: "cpu" }, partial: { stdout: "1\n" } },
    });
    const wait = "await new Promise((go) => setTimeout(go, 600)); 'waited'";
    expect((await execute(wasm, wait, { limits: { cpuQuotaMillis: 500 } })).value).toBe("waited");
  });

  it("ends calls that run, and leaves the thread that answers them free", async () => {
    const { promise: aborted, resolve } = Promise.withResolvers<boolean>();
    const run = (_: unknown, signal: AbortSignal) =>
      new Promise<never>((_go, reject) => {
        signal.addEventListener("abort", () => {
          resolve(true);
          reject(new Error("aborted"));
        });
      });
    const gateway = gatewayOf({ id: "wait", run });
    const code = "tools.call('wait'); await new Promise((go) => setTimeout(go, 20)); for (;;);";
    let turns = 0;
    const turning = setInterval(() => turns++, 5);
    const limits = { cpuQuotaMillis: 150 };
    const error = await failure(execute(wasm, code, { gateway, limits }));
    clearInterval(turning);
    expect(error.data).toEqual({ limit: "cpu" });
    expect(await aborted).toBe(true);
    expect(turns).toBeGreaterThan(3);
  });

  it("is the caller's, too", async () => {
    const over = new AbortController();
    const reason = new Error("enough");
    const gateway = gatewayOf({
      id: "stop",
      run: () => {
        over.abort(reason);
        return {};
      },
    });
    const code = "tools.call('stop'); await new Promise((go) => setTimeout(go, 1e6))";
    await expect(execute(wasm, code, { gateway }, { signal: over.signal })).rejects.toBe(reason);
  });
});

describe("sizes", { tags: "full" }, () => {
  it("of output", async () => {
    const { stdout, stderr } = await execute(
      wasm,
      "for (let i = 0; i < 20_000; i++) console.log('a line of some length ä€', i); console.error('x'.repeat(1e6))",
    );
    for (const text of [stdout, stderr]) {
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxStreamBytes);
      expect(Buffer.byteLength(text)).toBeGreaterThan(maxStreamBytes - 8);
      expect(text.at(-1)).toBe("…");
      expect(text).not.toContain("\ufffd");
    }
  });

  it("of values", async () => {
    const fits = await execute(wasm, `"x".repeat(${maxMessageBytes - 2})`);
    expect(fits.value).toHaveLength(maxMessageBytes - 2);
    const error = await failure(execute(wasm, `"x".repeat(${maxMessageBytes - 1})`));
    expect(error).toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "value_bytes" } });
  });

  it("of code", async () => {
    const error = await failure(execute(wasm, " ".repeat(maxCodeBytes + 1)));
    expect(error).toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "code" } });
  });

  it("of requests and answers", async () => {
    // Gateways of this project refuse such a result themselves.
    const runTool = async (id: string) => ({
      structured: { text: id === "large" ? "x".repeat(maxMessageBytes) : "" },
      artifacts: [],
    });
    const gateway = new Proxy<ToolGateway>(gatewayOf(), {
      get: (target, name) =>
        name === "runTool" ? runTool : (Reflect.get(target, name) as unknown),
    });
    const code = `
      const codeOf = (call) => call.then(() => "done", ({ code }) => code);
      [await codeOf(tools.large()), await codeOf(tools.echo({ a: "x".repeat(2 ** 20) }))]`;
    const { value } = await execute(wasm, code, { gateway });
    expect(value).toEqual(["RESOURCE_EXHAUSTED", "INVALID_REQUEST"]);
  });

  it("of calls at once", async () => {
    let [running, most] = [0, 0];
    const run = async () => {
      most = Math.max(most, ++running);
      await new Promise((go) => setTimeout(go, 5));
      running--;
      return {};
    };
    const code = "(await Promise.all(Array.from({ length: 60 }, () => tools.call('slow')))).length";
    const { value } = await execute(wasm, code, { gateway: gatewayOf({ id: "slow", run }) });
    expect(value).toBe(60);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(maxRequestsAtOnce);
  });

  it("of timers", async () => {
    const code = "for (let i = 0; ; i++) setTimeout(() => {}, 1e6)";
    expect((await failure(execute(wasm, code))).message).toContain("at most 1000 timers");
  });
});
