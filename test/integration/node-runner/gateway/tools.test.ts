/**
 * `tools` of a Node tool: what goes to the gateway, and what the tool gets of its answers.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { ToolCallError, createToolContext, tools } from "secure-tool-runtime/tool";
import { installTypes, typeCheck } from "../../../support/type-check.ts";
import { runnerDir, toolsDirectory } from "../run-node-tool.ts";
import {
  type GatewayRun,
  type Request,
  type Serve,
  failure,
  response,
  result,
  runModule,
  runWithGateway,
} from "./gateway-run.ts";

/** Answers each call with its id and its arguments. */
const echo: Serve = ({ payload }) => result(payload);
const silent: Serve = () => undefined;

const toolUrl = pathToFileURL(join(runnerDir, "tool.js")).href;

const sent = ({ requests }: GatewayRun) => requests.map(({ type, payload }) => ({ type, payload }));
const resultOf = ({ document, stderr }: GatewayRun) => document?.["result"] ?? { document, stderr };

test("calls a tool, and hands on its result and the artifacts that it created", async () => {
  const artifact = { filename: "a.csv", version: 2, mimeType: "text/csv", sizeBytes: 3 };
  const run = await runWithGateway(
    `const rows = await ctx.tools.call("sales:query", { region: "West" });
     return { rows, artifacts: tools.artifactsOf(rows), none: [tools.artifactsOf({}), tools.stepResultsOf(rows)] };`,
    () => result({ count: 7 }, [artifact]),
  );
  expect(run).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
  expect(sent(run)).toEqual([
    { type: "run_tool", payload: { id: "sales:query", args: { region: "West" } } },
  ]);
  expect(resultOf(run)).toEqual({ rows: { count: 7 }, artifacts: [artifact], none: [[], []] });
});

test("calls a tool by members of tools", async () => {
  const run = await runWithGateway(
    `const { sales, weather } = tools;
     return { all: [
       await sales.query({ a: 1 }), await ctx.tools.weather({}), await tools["a.b"]["c-d"](),
       await sales.call({}), await sales.name({}),
     ] };`,
    echo,
  );
  expect(resultOf(run)).toEqual({
    all: [
      { id: "sales:query", args: { a: 1 } },
      { id: "weather", args: {} },
      { id: "a.b:c-d", args: {} },
      { id: "sales:call", args: {} },
      { id: "sales:name", args: {} },
    ],
  });
});

test("survives that something looks at it, which calls nothing", async () => {
  const run = await runWithGateway(
    `const { inspect } = await import("node:util");
     return {
       awaited: (await tools) === tools && typeof (await tools.sales),
       inspected: inspect(tools, { depth: 0 }) !== "" && inspect(tools.sales),
       json: JSON.stringify([tools, tools.sales]),
       text: \`\${tools} \${tools.sales}\`,
       symbols: [Symbol.iterator in Object(tools), tools[Symbol.toPrimitive] === undefined],
       noName: [typeof tools["a b"], typeof tools.sales["x:y"]],
     };`,
    echo,
  );
  expect(run.requests).toEqual([]);
  expect(resultOf(run)).toEqual({
    awaited: "function",
    inspected: expect.stringMatching(/^\[Function/),
    json: "[{},null]",
    text: "[object Object] function () { [native code] }",
    symbols: [false, true],
    noName: ["undefined", "undefined"],
  });
  expect(inspect(tools)).toContain("call");
});

test("searches, lists, describes and chains", async () => {
  const answers: Readonly<Record<string, object>> = {
    search_tools: { results: [{ id: "a:b" }] },
    list_namespaces: { namespaces: ["a"] },
    describe_tool: { id: "a:b", summary: "text" },
    list_tool_examples: { examples: [{ description: "x", args: {} }] },
    run_chain: {
      structured: { last: 1 },
      artifacts: [{ filename: "f" }],
      stepResults: [{ toolId: "a:b" }],
    },
  };
  const run = await runWithGateway(
    `const last = await tools.chain([{ tool: "a:b", args: { x: 1 } }, { tool: "c", usePrevious: true }]);
     return {
       found: await tools.search("convert csv", { limit: 5 }), usual: await tools.search("x"),
       namespaces: await tools.namespaces(), described: await tools.describe("a:b"),
       summary: await tools.describe("a:b", { level: "summary" }),
       examples: await tools.examples("a:b", { max: 1 }), more: await tools.examples("a:b"),
       last, artifacts: tools.artifactsOf(last), steps: tools.stepResultsOf(last),
     };`,
    ({ type }) => response(answers[type]!),
  );
  expect(sent(run)).toEqual([
    {
      type: "run_chain",
      payload: {
        steps: [
          { toolId: "a:b", args: { x: 1 }, usePrevious: false },
          { toolId: "c", args: {}, usePrevious: true },
        ],
      },
    },
    { type: "search_tools", payload: { query: "convert csv", limit: 5 } },
    { type: "search_tools", payload: { query: "x", limit: 10 } },
    { type: "list_namespaces", payload: {} },
    { type: "describe_tool", payload: { id: "a:b", level: "full" } },
    { type: "describe_tool", payload: { id: "a:b", level: "summary" } },
    { type: "list_tool_examples", payload: { id: "a:b", max: 1 } },
    { type: "list_tool_examples", payload: { id: "a:b", max: 3 } },
  ]);
  expect(resultOf(run)).toMatchObject({
    found: [{ id: "a:b" }],
    namespaces: ["a"],
    described: { summary: "text" },
    examples: [{ description: "x" }],
    last: { last: 1 },
    steps: [{ toolId: "a:b" }],
    artifacts: [{ filename: "f" }],
  });
});

test("loads an artifact in pieces, all of the version of the first", async () => {
  const content = Buffer.alloc(1_200_000, "0123456789");
  const run = await runWithGateway(
    `const { createHash } = await import("node:crypto");
     const sha = (bytes) => createHash("sha1").update(bytes).digest("hex");
     const bytes = await tools.loadArtifact("data.bin");
     const empty = await tools.loadArtifact("empty", { version: 3 });
     return { sha: sha(bytes), length: bytes.length, empty: empty.length };`,
    ({ payload }) => {
      const { filename, offset, length } = payload as Record<"offset" | "length", number> & {
        filename: string;
      };
      const whole = filename === "empty" ? Buffer.alloc(0) : content;
      return response({
        content: whole.subarray(offset, offset + length).toString("base64"),
        version: 4,
        mimeType: "application/octet-stream",
        sizeBytes: whole.length,
      });
    },
  );
  const { createHash } = await import("node:crypto");
  const sha = createHash("sha1").update(content).digest("hex");
  expect(resultOf(run)).toEqual({ sha, length: content.length, empty: 0 });
  const length = 512 * 1024;
  expect(run.requests.map(({ payload }) => payload)).toEqual([
    { filename: "data.bin", offset: 0, length },
    { filename: "data.bin", version: 4, offset: length, length },
    { filename: "data.bin", version: 4, offset: 2 * length, length },
    { filename: "empty", version: 3, offset: 0, length },
  ]);
});

test("throws what the gateway says of a failure", async () => {
  const stepResults = [{ toolId: "a", structured: { ok: 1 } }];
  const said = {
    error: "no",
    code: "LIMIT_REACHED",
    retryable: true,
    data: { a: 1 },
    op: "execute",
  };
  const run = await runWithGateway(
    `const caught = async (promise) => {
       const error = await promise.catch((error) => error);
       const { name, message, code, retryable, data, op, stepResults } = error;
       return { is: error instanceof ToolCallError, name, message, code, retryable, data, op, stepResults };
     };
     return { call: await caught(ctx.tools.call("a")), chain: await caught(tools.chain([{ tool: "a" }])) };`,
    ({ type }) => failure(type === "run_chain" ? { ...said, stepResults } : said),
  );
  const { error: message, ...rest } = said;
  const expected = { is: true, name: "ToolCallError", message, ...rest };
  expect(resultOf(run)).toEqual({ call: expected, chain: { ...expected, stepResults } });
});

test("the copies of the runner and of the tool share the channel and know each other's errors", async () => {
  const run = await runWithGateway(
    `const [made, error] = await Promise.all([ctx.tools.a(), tools.fails().catch((error) => error)]);
     const other = await ctx.tools.fails().catch((error) => error);
     const known = [error, other, new Error("x"), null].map((each) => each instanceof ToolCallError);
     class Mine extends ToolCallError {}
     known.push(other instanceof Mine, new Mine("A", "b") instanceof Mine);
     return { isCopy: ctx.tools !== tools, known, artifacts: tools.artifactsOf(made) };`,
    ({ payload }) => (payload["id"] === "a" ? result({}, [{ filename: "f" }]) : failure({})),
    { hasOwnCopy: true },
  );
  expect(resultOf(run)).toEqual({
    isCopy: true,
    known: [true, true, false, false, false, true],
    artifacts: [{ filename: "f" }],
  });
  expect(new Set(run.requests.map(({ id }) => id)).size).toBe(3);
});

test("an error that the tool does not catch fails its call", async () => {
  const run = await runWithGateway(`await tools.a();`, () =>
    failure({ error: "not for you", code: "NOT_ALLOWED", retryable: false }),
  );
  expect(run.document).toEqual({
    error: "Tool threw ToolCallError: not for you",
    error_code: "EXECUTION_ERROR",
  });
});

test("cancels a call when its signal aborts, and knows the answer no more", async () => {
  const run = await runWithGateway(
    `const controller = new AbortController();
     const call = tools.call("slow", {}, { signal: controller.signal }).catch((reason) => reason);
     await tools.call("quick");
     controller.abort("enough");
     const early = await tools.search("x", { signal: AbortSignal.abort("before") }).catch((reason) => reason);
     return { reason: await call, early, later: await tools.call("quick") };`,
    ({ type, id, payload }, gateway) => {
      if (type === "cancel") gateway.answer(id, failure({ error: "x", code: "CANCELLED" }));
      return payload?.["id"] === "quick" ? result({ ok: true }) : undefined;
    },
  );
  expect(run.requests.filter(({ type }) => type === "cancel")).toEqual([
    { type: "cancel", id: run.requests[0]?.id },
  ]);
  expect(run.requests.map(({ type }) => type)).not.toContain("search_tools");
  expect(resultOf(run)).toEqual({ reason: "enough", early: "before", later: { ok: true } });
});

test("sends as much as the worker reads", async () => {
  const run = await runWithGateway(
    `const text = ',[{"\\\\' + ",".repeat(100_000);
     const list = Array(200_000).fill("");
     const big = await tools.a({ text, list });
     return { same: big.args.text === text && big.args.list.length };`,
    echo,
  );
  expect(resultOf(run)).toEqual({ same: 200_000 });
});

test("a hundred calls, eight at a time, are answered in any order", async () => {
  const waiting: Request[] = [];
  const ids = new Set<string>();
  const run = await runWithGateway(
    `const numbers = Array.from({ length: 100 }, (_, n) => n);
     const all = await Promise.all(numbers.map((n) => tools.echo({ n })));
     return { same: all.every(({ args }, index) => args.n === index) };`,
    (request, gateway) => {
      waiting.push(request);
      ids.add(request.id);
      if (waiting.length < 8 && ids.size < 100) return undefined;
      for (const { id, payload } of waiting.splice(0).toReversed()) {
        gateway.answer(id, result(payload));
      }
      return undefined;
    },
  );
  expect(ids.size).toBe(100);
  expect(resultOf(run)).toEqual({ same: true });
});

test("more than eight calls wait in their order, and a cancelled one is never sent", async () => {
  const run = await runWithGateway(
    `const controllers = Array.from({ length: 12 }, () => new AbortController());
     const calls = controllers.map(({ signal }, n) =>
       (n === 10 ? tools.chain([{ tool: "c" }], { signal }) : tools.call("c", { n }, { signal })).catch((reason) => reason));
     await tools.search("sent at once");
     controllers[9].abort("never sent");
     controllers[0].abort("cancelled");
     return { reasons: [await calls[9], await calls[0]], others: (await Promise.all(calls)).length };`,
    ({ type, id }, gateway) => {
      if (type === "search_tools") return response({ results: [] });
      if (type === "run_chain") return response({ structured: {}, artifacts: [], stepResults: [] });
      const { requests } = gateway;
      if (type !== "cancel") return requests.length > 10 ? result({}) : undefined;
      gateway.answer(id, failure({ error: "x", code: "CANCELLED" }));
      for (const request of requests.slice(1, 8)) gateway.answer(request.id, result({}));
      return undefined;
    },
  );
  const what = run.requests.map(({ type, payload }) => {
    const args = payload?.["args"] as { n: number } | undefined;
    return args?.n ?? type;
  });
  const first = [0, 1, 2, 3, 4, 5, 6, 7];
  expect(what).toEqual([...first, "search_tools", "cancel", 8, "run_chain", 11]);
  expect(resultOf(run)).toEqual({ reasons: ["never sent", "cancelled"], others: 12 });
});

test("as many calls as the worker says are sent", async () => {
  const run = await runWithGateway(
    `const calls = [0, 1, 2].map((n) => tools.call("c", { n }));
     await tools.search("sent at once");
     return { results: await Promise.all(calls) };`,
    ({ type, payload }, gateway) => {
      if (type === "run_tool") return gateway.requests.length > 3 ? result(payload) : undefined;
      for (const { id } of gateway.requests.slice(0, 2)) gateway.answer(id, result({}));
      return response({ results: [] });
    },
    { members: { gateway: { fd: 4, max_concurrent_calls: 2 } } },
  );
  const types = run.requests.map(({ type }) => type);
  expect(types).toEqual(["run_tool", "run_tool", "search_tools", "run_tool"]);
  expect(resultOf(run)).toMatchObject({ results: [{}, {}, { args: { n: 2 } }] });
});

test("takes an answer of ten million bytes", async () => {
  const run = await runWithGateway(
    `const { text } = await tools.big(); return { length: text.length, next: await tools.a() };`,
    ({ payload }) => result(payload["id"] === "big" ? { text: "ü".repeat(5_000_000) } : {}),
  );
  expect(resultOf(run)).toEqual({ length: 5_000_000, next: {} });
});

test.for<[what: string, answer: (gateway: Parameters<Serve>[1]) => void]>([
  ["a channel that the worker closes", ({ socket }) => socket.end()],
  ["a line that is not JSON", ({ socket }) => socket.write("{\n")],
  ["a line that is no answer", ({ socket }) => socket.write('{"type":"run_tool","payload":{}}\n')],
  ["a line that never ends", ({ socket }) => socket.write(Buffer.alloc(33 * 1024 * 1024, "a"))],
])("%s ends the calls and refuses others", async ([, answer]) => {
  const run = await runWithGateway(
    `const code = (error) => error.code;
     return { codes: [...await Promise.all([tools.a().catch(code), tools.b().catch(code)]), await tools.c().catch(code)] };`,
    ({ payload }, gateway) => void (payload["id"] === "b" && answer(gateway)),
  );
  expect(resultOf(run)).toEqual({ codes: Array(3).fill("GATEWAY_CLOSED") });
  expect(run.requests).toHaveLength(2);
});

test("refuses by itself what the worker would close the channel for", async () => {
  const run = await runWithGateway(
    `const told = (error) => \`\${error.code ?? error.name}: \${error.message}\`;
     const circular = {}; circular.self = circular;
     return { told: await Promise.all([
       tools.a({ text: "x".repeat(1_100_000) }), tools.a({ list: Array(250_000).fill(0) }), tools.a([1]), tools.a(new Date()), tools.a(circular),
       tools.a("x"), tools.call(1), tools.search(), tools.search("x", { limit: 0.5 }),
       tools.describe("a", { level: "all" }), tools.loadArtifact("a", { version: -1 }),
       tools.chain([{ tool: "a", args: 1 }]), tools.chain(),
     ].map((call) => call.then(() => "no error", told))) };`,
    echo,
  );
  expect(run.requests).toEqual([]);
  expect(resultOf(run)).toEqual({
    told: [
      expect.stringMatching(/^INVALID_REQUEST: The request has 1100\d\d\d bytes, more than/),
      "INVALID_REQUEST: The request has more than the 250000 values that are accepted",
      "TypeError: args must be an object",
      "TypeError: args must be an object",
      "TypeError: args are not JSON: self is circular",
      "TypeError: args must be an object",
      "TypeError: id must be text, not number",
      "TypeError: query must be text, not undefined",
      "TypeError: limit must be a whole number from 0",
      "RangeError: level must be summary or schema or full",
      "TypeError: version must be a whole number from 0",
      "TypeError: args must be an object",
      expect.stringMatching(/^TypeError: /),
    ],
  });
});

test("nothing is sent without a gateway", async () => {
  const body = `
    const codes = await Promise.all([
      tools.a(), tools.call("a"), tools.chain([]), tools.search("a"), tools.namespaces(),
      tools.describe("a"), tools.examples("a"), ctx.tools.loadArtifact("a"),
    ].map((use) => use.catch(({ code, message }) => code + " " + message)));
    return { codes: [...new Set(codes)] };`;
  const run = await runWithGateway(body, echo, { members: { gateway: null } });
  expect(resultOf(run)).toEqual({
    codes: ["NOT_ALLOWED The tool's manifest entry has no gateway"],
  });
  const context = createToolContext();
  const error: unknown = await context.tools["a"]?.().catch((error: unknown) => error);
  expect(error).toBeInstanceOf(ToolCallError);
  expect(error).toMatchObject({ code: "NOT_ALLOWED", retryable: false });
  expect(createToolContext({ tools }).tools).toBe(tools);
});

test("a worker thread is told that it cannot call tools", async () => {
  const run = await runModule(
    `import { Worker, isMainThread, parentPort } from "node:worker_threads";
     import { tools } from "${toolUrl}";
     if (!isMainThread) parentPort.postMessage(await tools.a().catch((error) => error.message));
     export const run = () => new Promise((resolve) => {
       new Worker(new URL(import.meta.url)).on("message", (told) => resolve({ told }));
     });`,
    echo,
  );
  expect(resultOf(run)).toEqual({
    told: "Tools can be called by the main thread only, not by a worker thread",
  });
});

test.for([false, true])(
  "no child of the tool inherits the channel (parked: %s)",
  async (isParked) => {
    const run = await runWithGateway(
      `const { execFileSync } = await import("node:child_process");
     const sockets = () => execFileSync("/bin/ls", ["-l", "/proc/self/fd"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).split("socket:").length - 2;
     const before = sockets(); await tools.a(); return { before, after: sockets() };`,
      echo,
      { isParked },
    );
    expect(resultOf(run)).toEqual({ before: 0, after: 0 });
  },
);

test.for([2, 16, 1.5, "3"])("a descriptor %s is none of a gateway's", async (fd) => {
  const run = await runWithGateway("return {}", echo, { members: { gateway: { fd } } });
  expect(run).toMatchObject({ exitCode: 1, document: undefined });
  expect(run.stderr).toContain('"gateway.fd" must be from 3 to 15');
});

test("a runner that has waited for its call calls tools, and not before", async () => {
  const run = await runWithGateway("return await tools.a({ b: 1 });", echo, { isParked: true });
  expect(resultOf(run)).toEqual({ id: "a", args: { b: 1 } });
  const early = await runModule(
    `import { tools } from "secure-tool-runtime/tool";
     const early = await tools.a().catch(({ message }) => message);
     export const run = async () => ({ early, later: await tools.b() });`,
    echo,
    { isParked: true },
  );
  expect(resultOf(early)).toEqual({
    early: "There is no call, so no tools can be called",
    later: { id: "b", args: {} },
  });
});

test("a call whose answer nobody awaits keeps the process until it ends", async () => {
  const run = await runWithGateway(
    `tools.a().then(() => console.log("answered")); return {};`,
    ({ id }, gateway) => void setTimeout(() => gateway.answer(id, result({})), 100),
  );
  expect(run).toMatchObject({ exitCode: 0, stdout: "answered\n", stderr: "" });
});

test("a request in flight does not hold the answer for ever", { tags: "full" }, async () => {
  const run = await runWithGateway("tools.a(); return {};", silent);
  expect(run).toMatchObject({ exitCode: 0, document: { result: {} } });
  expect(run.stderr).toContain("ended what was still running 2 s after the tool");
});

test("its types let authors call tools in each form", { tags: "full" }, async () => {
  const source = `
    import { ToolCallError, tools, createToolContext, type ToolContext, type Tools } from "secure-tool-runtime/tool";
    export async function run(_args: object, ctx: ToolContext) {
      const rows = await tools.call<{ n: number }>("sales:query", { region: "West" }, { signal: ctx.signal });
      const again = await ctx.tools.sales.query({ region: "West" });
      const weather = await tools.weather<{ t: number }>({});
      const last = await tools.chain([{ tool: "a" }, { tool: "b", usePrevious: true }]);
      const found = await tools.search("x", { limit: 3 });
      const bytes: Uint8Array = await tools.loadArtifact("a");
      try { await tools.a.b(); } catch (error) { if (error instanceof ToolCallError) return { code: error.code, at: error.stepResults?.length }; }
      const mine: Tools = tools;
      createToolContext({ tools: mine });
      return { n: rows.n + weather.t, again: again["x"], last, first: found[0]?.id, bytes: bytes.length, made: tools.artifactsOf(last)[0]?.filename };
    }`;
  const compilerOptions = {
    ...{ strict: true, module: "NodeNext", target: "ES2024", noEmit: true, types: ["node"] },
    verbatimModuleSyntax: true,
  };
  const check = async (text: string) => {
    const directory = await toolsDirectory({
      "tool.ts": text,
      "package.json": '{"type": "module"}',
      "tsconfig.json": JSON.stringify({ compilerOptions, include: ["*.ts"] }),
    });
    await installTypes(directory);
    return typeCheck(directory);
  };
  expect(await check(source)).toBe("");
  expect(await check(source.replace("limit: 3", "limit: '3'"))).toContain("TS2322");
});
