/**
 * The global `tools` of programs, as tool-runner/node/tool.d.ts describes it. This function's text
 * runs inside, as that of globals.ts.
 */
import type { Guest, GuestBounds, GuestHost, GuestTools, Payload } from "./contract.ts";

/** Requests beyond `maxRequestsAtOnce` wait for answers to others. */
export function makeTools(
  request: GuestHost["request"],
  { maxRequestsAtOnce, maxArgsDepth }: Pick<GuestBounds, "maxRequestsAtOnce" | "maxArgsDepth">,
  encode: Guest["encode"],
): GuestTools {
  const { parse, stringify } = JSON;
  const { hasOwn, defineProperty } = Object;
  const { isSafeInteger } = Number;
  const runKey = Symbol("run");

  /** A call of a tool that failed, or another use of `tools`. */
  class ToolCallError extends Error {
    declare readonly code: string;
    constructor(code: string, text: string, details: Payload = {}) {
      super(text);
      const { retryable = false, data, op, stepResults } = details;
      Object.assign(this, { code, retryable, data, op, stepResults });
    }
  }
  defineProperty(ToolCallError.prototype, "name", { value: "ToolCallError", writable: true });

  interface Pending {
    readonly stack: string | undefined;
    resolve(payload: Payload): void;
    reject(error: unknown): void;
  }
  const pending = new Map<number, Pending>();
  const waiting: (() => void)[] = [];
  let sent = 0;
  let lastId = 0;
  const ask = (type: string, payload: Payload): Promise<Payload> =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      const json = stringify(payload);
      // The engine has no stacks of callers that await.
      pending.set(id, { stack: new Error().stack, resolve, reject });
      const send = (): void => {
        sent++;
        request(id, type, json);
      };
      if (sent < maxRequestsAtOnce) send();
      else waiting.push(send);
    });

  const text = (name: string, value: unknown): string => {
    if (typeof value === "string") return value;
    throw new TypeError(`${name} must be text, not ${value === null ? "null" : typeof value}`);
  };
  const count = (name: string, value: unknown): number => {
    if (isSafeInteger(value) && Number(value) >= 0) return Number(value);
    throw new TypeError(`${name} must be a whole number from 0`);
  };
  const argsOf = (args: unknown): unknown => {
    let json;
    try {
      json = encode(args, maxArgsDepth);
    } catch (error) {
      throw new TypeError(`args are not JSON: ${(error as Error).message}`, { cause: error });
    }
    if (json[0] !== "{") throw new TypeError("args must be an object");
    return parse(json);
  };
  const resultOf = ({ structured, ...run }: Payload): object =>
    defineProperty(structured as object, runKey, { value: run });
  const runOf = (result: object): Payload =>
    ((result as Record<symbol, unknown>)[runKey] as Payload | undefined) ?? {};

  interface Options {
    readonly limit?: unknown;
    readonly max?: unknown;
    readonly level?: unknown;
  }
  interface Step {
    readonly tool?: unknown;
    readonly args?: unknown;
    readonly usePrevious?: unknown;
  }
  const stepOf = ({ tool, args = {}, usePrevious = false }: Step): Payload => ({
    ...{ toolId: text("tool", tool), args: argsOf(args), usePrevious: Boolean(usePrevious) },
  });
  const methods = {
    call: async (id: unknown, args: unknown = {}) =>
      resultOf(await ask("run_tool", { id: text("id", id), args: argsOf(args) })),
    chain: async (steps: Iterable<Step>) =>
      resultOf(await ask("run_chain", { steps: Array.from(steps, stepOf) })),
    search: async (query: unknown, { limit = 10 }: Options = {}) => {
      const payload = { query: text("query", query), limit: count("limit", limit) };
      return (await ask("search_tools", payload))["results"];
    },
    namespaces: async () => (await ask("list_namespaces", {}))["namespaces"],
    describe: async (id: unknown, { level = "full" }: Options = {}) => {
      if (level !== "summary" && level !== "schema" && level !== "full")
        throw new RangeError("level must be summary or schema or full");
      return ask("describe_tool", { id: text("id", id), level });
    },
    examples: async (id: unknown, { max = 3 }: Options = {}) => {
      const payload = { id: text("id", id), max: count("max", max) };
      return (await ask("list_tool_examples", payload))["examples"];
    },
    loadArtifact: async () => {
      throw new ToolCallError("NOT_ALLOWED", "Programs in wasm load no artifacts");
    },
    artifactsOf: (result: object) => runOf(result)["artifacts"] ?? [],
    stepResultsOf: (result: object) => runOf(result)["stepResults"] ?? [],
  };
  const namePattern = /^[A-Za-z0-9_.-]{1,128}$/;
  const isToolName = (name: string | symbol): name is string =>
    typeof name === "string" &&
    !(name in Object.prototype) &&
    name !== "then" &&
    name !== "toJSON" &&
    namePattern.test(name);
  const caller = (id: string) => (args: unknown) => methods.call(id, args);
  const namespace = (name: string) =>
    new Proxy(caller(name), {
      get: (target, tool) =>
        isToolName(tool)
          ? caller(`${name}:${tool}`)
          : (target as unknown as Record<symbol, unknown>)[tool],
    });
  const tools = new Proxy(methods, {
    get: (target, name) =>
      hasOwn(target, name) || !isToolName(name)
        ? (target as unknown as Record<string | symbol, unknown>)[name]
        : namespace(name),
  });

  return {
    tools,
    ToolCallError,
    answer(id, line) {
      const settled = pending.get(id);
      pending.delete(id);
      sent--;
      waiting.shift()?.();
      const { type, payload } = parse(line) as { type: string; payload: Payload };
      if (type === "response") return settled?.resolve(payload);
      const { code, error, ...details } = payload;
      const failure = new ToolCallError(String(code), String(error), details);
      if (settled?.stack !== undefined) failure.stack = settled.stack;
      settled?.reject(failure);
    },
  };
}
