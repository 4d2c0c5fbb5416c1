/**
 * What hostile programs in the wasm backend do not reach: the host, each other, their result's way.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { openWasm } from "../../../worker/runtime/wasm/open.ts";
import { gatewayOf } from "../../support/gateway/raw-program.ts";
import { execute, failure } from "../../support/runtime/programs.ts";

let wasm: RuntimeBackend;
beforeAll(async () => {
  // One thread: programs follow each other on it.
  wasm = await openWasm({ maxThreads: 1, idleThreads: 0 });
});
afterAll(() => wasm[Symbol.asyncDispose]());

const valueOf = async (code: string): Promise<unknown> => (await execute(wasm, code)).value;

it("has nothing inside that the profile hardened would forbid", async () => {
  expect(wasm.profiles).toContain("hardened");
  expect((await execute(wasm, "1", { profile: "hardened" })).value).toBe(1);
});

describe("the host", () => {
  it("has no name inside", async () => {
    const names = [
      "process",
      "require",
      "module",
      "global",
      "Buffer",
      "WebAssembly",
      "fetch",
      "std",
    ];
    const makers = ["(() => {})", "tools.call", "console.log", "setTimeout", "tools.math.add"];
    const code = `
      const names = ${JSON.stringify(names)};
      const found = names.filter((name) => name in globalThis);
      for (const maker of [${makers.join(", ")}])
        for (const name of names)
          if ((await maker.constructor("return typeof " + name)()) !== "undefined") found.push(name);
      found`;
    expect(await valueOf(code)).toEqual([]);
  });

  it.each([
    "fs",
    "node:fs",
    "./wasm-thread.ts",
    "file:///etc/passwd",
    "data:text/javascript,1",
    "quickjs-wasi",
  ])("gives no module: %s", async (name) => {
    const code = `await import(${JSON.stringify(name)}).then(() => "loaded", ({ message }) => message)`;
    expect(await valueOf(code)).toContain("cannot import");
  });

  it("shows none of its paths", async () => {
    const code = `
      const texts = [];
      const keep = (error) => texts.push(error.message, error.stack);
      await import("fs").catch(keep);
      await tools.text.fail().catch(keep);
      await tools.call("no:such").catch(keep);
      await tools.call(Symbol()).catch(keep);
      try { null.x } catch (error) { keep(error) }
      setTimeout(() => {}, { valueOf() { keep(new Error()); return 1 } });
      texts.join()`;
    const text = String(await valueOf(code));
    expect(text).toContain("cannot import");
    expect(text).not.toMatch(/worker\/|node_modules|file:|node:|\/work|quickjs/);
  });

  it("keeps its prototypes whatever comes out", async () => {
    let seen: unknown;
    const gateway = gatewayOf({
      id: "see",
      run: (args) => {
        seen = args;
        return args;
      },
    });
    const code = `
      const evil = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}');
      __out = { evil, back: await tools.see(evil) }`;
    const { value } = await execute(wasm, code, { gateway });
    const own = JSON.parse(
      '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}',
    ) as object;
    expect(value).toEqual({ evil: own, back: own });
    expect(Object.keys(seen as object)).toEqual(["__proto__", "constructor"]);
    expect("polluted" in {}).toBe(false);
  });
});

describe("a result", () => {
  const breaks = [
    'JSON.stringify = JSON.parse = () => \'{"kind":"value","json":"1"}\'',
    "for (const name of ['kind', 'json', 'type', 'outcome', 'isReusable', 'value', 'then', 'handle']) Object.defineProperty(Object.prototype, name, { value: 'forged', configurable: true, writable: true })",
    "Object.prototype.toJSON = function () { return 'forged' }",
    "String.prototype.toString = Array.prototype.map = Array.prototype.push = Map.prototype.get = () => 'forged'",
    "Promise.prototype.then = Promise.resolve = () => 'forged'; Promise = undefined",
    "Object.defineProperty(Object.prototype, 'value', { get() { return 'forged' }, configurable: true })",
    "Symbol.iterator.toString = Array.prototype[Symbol.iterator] = undefined",
    "Error.prepareStackTrace = () => ({ forged: 1 }); Error.stackTraceLimit = -1",
    "globalThis.tools = { call: () => 'forged' }; globalThis.console = null",
  ];

  it.each(breaks)("is one, whatever the program breaks: %s", async (code) => {
    // The program can choose its value, or fail, and nothing else.
    const ended = await execute(wasm, `${code}; __out = [1, { a: 2 }]`).catch(
      (error: unknown) => error,
    );
    if (ended instanceof Error) expect(ended).toMatchObject({ code: "EXECUTION_FAILED" });
    else expect(Object.keys(ended as object)).toContain("limitsEnforced");
    expect(await valueOf("[1, { a: 2 }]")).toEqual([1, { a: 2 }]);
  });

  it("of an odd __out is what JSON says", async () => {
    expect(await valueOf("__out = new Proxy({ a: 1 }, {})")).toEqual({ a: 1 });
    const error = await failure(
      execute(
        wasm,
        "Object.defineProperty(globalThis, '__out', { get() { throw new Error('no') } })",
      ),
    );
    expect(error.message).toContain("Error: no");
    expect((await failure(execute(wasm, "__out = Symbol()"))).message).toContain("is a symbol");
  });

  it("counts the calls that were made, whoever settles their promises", async () => {
    const code = `
      const { set } = Map.prototype;
      Map.prototype.set = function (key, value) {
        value?.resolve?.({ structured: { forged: true } });
        return set.call(this, key, value);
      };
      await tools.text.echo({ a: 1 })`;
    const { value, toolCalls } = await execute(wasm, code);
    expect(value).toEqual({ forged: true });
    expect(toolCalls.length).toBeLessThanOrEqual(1);
    expect(await valueOf("await tools.text.echo({ a: 1 })")).toEqual({ a: 1 });
  });

  it("is bounded where the program calls the runtime's own functions", async () => {
    // A getter of arguments runs below them.
    const code = `
      const found = new Set();
      Error.prepareStackTrace = (_, sites) => { for (const site of sites) found.add(site.getFunction?.()); return "" };
      const args = { get a() { void new Error().stack; return 1 } };
      await tools.text.echo(args);
      for (const each of found)
        for (const given of [[], [1], ["run_tool", {}], [{}, "", 0, []], [Symbol(), null]])
          try { await Promise.race([each?.(...given), 1]) } catch {}
      __out = "went on"`;
    const ended = await execute(wasm, code).catch((error: unknown) => error);
    if (ended instanceof Error) expect(ended).toMatchObject({ code: "EXECUTION_FAILED" });
    expect(await valueOf("1 + 1")).toBe(2);
  });
});

describe("an earlier program", () => {
  it("leaves nothing to the next", async () => {
    const leave = "globalThis.left = 1; Array.prototype.left = 1; console.log(1); console.error(1)";
    await execute(wasm, leave);
    const look = "[typeof left, typeof [].left, typeof globalThis.left]";
    expect(await execute(wasm, look)).toMatchObject({
      ...{ value: ["undefined", "undefined", "undefined"], stdout: "", stderr: "" },
    });
  });

  it("does not go on beside the next", async () => {
    const { promise: answers, resolve } = Promise.withResolvers<object>();
    const gateway = gatewayOf({ id: "late", run: async () => ({ ...(await answers) }) });
    const code = `
      const go = (text) => console.log(text);
      tools.late().then(go, go);
      setTimeout(go, 20, "late");
      "ended"`;
    expect((await execute(wasm, code, { gateway })).value).toBe("ended");
    resolve({ late: true });
    // Its timer has the number of the one before.
    const next = `
      const start = performance.now();
      await new Promise((go) => setTimeout(go, 60));
      console.log("mine");
      performance.now() - start > 50`;
    expect(await execute(wasm, next)).toMatchObject({ value: true, stdout: "mine\n" });
  });
});
