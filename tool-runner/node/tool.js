/**
 * What a tool imports as `secure-tool-runtime/tool`. The types and their documentation are in
 * tool.d.ts.
 */
import { Context, ToolCallError, ToolError } from "./context.js";

/** @import { ToolMethods, Tools } from "./tool.js" */
/** @import { Client, Run } from "./gateway/client.js" */

export { ToolCallError, ToolError };

/**
 * The gateway of the process's call, where there is one. The runner sets it; the client is of the
 * copy of this file that uses it first.
 *
 * @typedef {{ fd?: number, path?: string, max_concurrent_calls?: number }} Place
 *
 * @typedef {Place & { client?: Promise<Client> }} Gateway
 */
const gatewayKey = Symbol.for("secure-tool-runtime.gateway");
/** Calls without an answer, where the worker says nothing. */
const defaultConcurrentCalls = 8;
/** On results: what else the answer said, see {@link Run}. */
const runKey = Symbol.for("secure-tool-runtime.run");

/** Of a namespace, and of a tool in it. */
const namePattern = /^[A-Za-z0-9_.-]{1,128}$/;
/** With these, the tools would count as a promise, and as what has a JSON form. */
const reservedNames = new Set(["then", "toJSON"]);

/**
 * The client, made at the first use: its modules take milliseconds to load.
 *
 * @returns {Promise<Client>}
 */
async function client() {
  if (!process.getBuiltinModule("node:worker_threads").isMainThread) {
    throw new Error("Tools can be called by the main thread only, not by a worker thread");
  }
  const gateway = /** @type {Gateway | undefined} */ (Reflect.get(globalThis, gatewayKey));
  if (gateway === undefined) {
    throw new ToolCallError("NOT_ALLOWED", "There is no call, so no tools can be called");
  }
  const { fd, path, max_concurrent_calls: maxCalls = defaultConcurrentCalls } = gateway;
  const place = fd ?? path;
  if (place === undefined) {
    throw new ToolCallError("NOT_ALLOWED", "The tool's manifest entry has no gateway");
  }
  gateway.client ??= import("./gateway/client.js").then(({ openClient }) =>
    openClient(place, maxCalls, runKey),
  );
  return gateway.client;
}

// Each awaits what it returns: so the stack of an error leads to the caller.
const methods = {
  /** @type {ToolMethods["call"]} */
  call: async (id, args, options) => await (await client()).call(id, args, options),
  /** @type {ToolMethods["chain"]} */
  chain: async (steps, options) => await (await client()).chain(steps, options),
  /** @type {ToolMethods["search"]} */
  search: async (query, options) => await (await client()).search(query, options),
  /** @type {ToolMethods["namespaces"]} */
  namespaces: async (options) => await (await client()).namespaces(options),
  /** @type {ToolMethods["describe"]} */
  describe: async (id, options) => await (await client()).describe(id, options),
  /** @type {ToolMethods["examples"]} */
  examples: async (id, options) => await (await client()).examples(id, options),
  /** @type {ToolMethods["loadArtifact"]} */
  loadArtifact: async (filename, options) => await (await client()).loadArtifact(filename, options),
  /** @type {ToolMethods["artifactsOf"]} */
  artifactsOf: (result) => runOf(result).artifacts ?? [],
  /** @type {ToolMethods["stepResultsOf"]} */
  stepResultsOf: (result) => runOf(result).stepResults ?? [],
};

/** @type {Tools} */
export const tools = new Proxy(/** @type {Tools} */ (methods), {
  get: (target, name) =>
    !Object.hasOwn(target, name) && isToolName(name) ? namespace(name) : Reflect.get(target, name),
});

/**
 * @param {object} result
 * @returns {Partial<Run>}
 */
function runOf(result) {
  return Reflect.get(result, runKey) ?? {};
}

/**
 * A namespace whose members are its tools, and at the same time the tool of this name without one.
 *
 * @param {string} name
 */
function namespace(name) {
  return new Proxy(caller(name), {
    get: (target, tool) =>
      isToolName(tool) ? caller(`${name}:${tool}`) : Reflect.get(target, tool),
  });
}

/**
 * @param {string} id
 * @returns {import("./tool.js").ToolFunction}
 */
function caller(id) {
  return (args, options) => methods.call(id, args, options);
}

/**
 * Whether a member is a tool or a namespace, and not what every object has.
 *
 * @param {string | symbol} name
 * @returns {name is string}
 */
function isToolName(name) {
  return (
    typeof name === "string" &&
    !(name in Object.prototype) &&
    !reservedNames.has(name) &&
    namePattern.test(name)
  );
}

/** @type {typeof import("./tool.js").createToolContext} */
export function createToolContext(options = {}) {
  return new Context({ ...options, tools: options.tools ?? tools });
}
