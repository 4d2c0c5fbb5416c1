/**
 * The operations of `tools`, which tool.d.ts documents. Loaded at the first use.
 */
import { NotJson, encode } from "../json.js";
import { Channel } from "./channel.js";

/** @import { ChainStep, CreatedArtifact, StepResult, ToolMethods } from "../tool.js" */

/** Bytes of an artifact in one answer. */
const pieceBytes = 512 * 1024;
const defaultResults = 10;
const defaultExamples = 3;
const levels = ["summary", "schema", "full"];

/** @typedef {{ content: string, version: number, sizeBytes: number }} Piece */
/**
 * What the answer to a call has besides the result; the steps are those of a chain.
 *
 * @typedef {{ artifacts: readonly CreatedArtifact[], stepResults?: readonly StepResult[] }} Run
 */
/**
 * What `tools` needs a channel for, and the end of what still runs there.
 *
 * @typedef {Omit<ToolMethods, "artifactsOf" | "stepResultsOf"> & { abandon(): void }} Client
 */

/**
 * @param {number | string} place descriptor of the channel, which is the client's from now on, or
 *   the path to connect to
 * @param {number} maxConcurrentCalls calls without an answer on the channel
 * @param {symbol} runKey the member of a result for its {@link Run}
 * @returns {Client}
 */
export function openClient(place, maxConcurrentCalls, runKey) {
  const channel = new Channel(place, maxConcurrentCalls);

  /** @param {Record<string, unknown>} payload of the response to a call or a chain */
  const resultOf = ({ structured, ...run }) =>
    Object.defineProperty(/** @type {object} */ (structured), runKey, { value: run });

  return /** @type {Client} */ ({
    async call(id, args = {}, { signal } = {}) {
      const payload = { id: text("id", id), args: argsOf(args) };
      return resultOf(await channel.request("run_tool", payload, signal));
    },

    async chain(steps, { signal } = {}) {
      const payload = { steps: Array.from(steps, stepOf) };
      return resultOf(await channel.request("run_chain", payload, signal));
    },

    async search(query, { limit = defaultResults, signal } = {}) {
      const payload = { query: text("query", query), limit: count("limit", limit) };
      const { results } = await channel.request("search_tools", payload, signal);
      return results;
    },

    async namespaces({ signal } = {}) {
      const { namespaces } = await channel.request("list_namespaces", {}, signal);
      return namespaces;
    },

    async describe(id, { level = "full", signal } = {}) {
      if (!levels.includes(level)) throw new RangeError(`level must be ${levels.join(" or ")}`);
      const payload = { id: text("id", id), level };
      return /** @type {unknown} */ (await channel.request("describe_tool", payload, signal));
    },

    async examples(id, { max = defaultExamples, signal } = {}) {
      const payload = { id: text("id", id), max: count("max", max) };
      const { examples } = await channel.request("list_tool_examples", payload, signal);
      return examples;
    },

    async loadArtifact(filename, { version, signal } = {}) {
      text("filename", filename);
      const pieces = [];
      let offset = 0;
      let known = version === undefined ? {} : { version: count("version", version) };
      for (;;) {
        const payload = { filename, ...known, offset, length: pieceBytes };
        const piece = await channel.request("load_artifact", payload, signal);
        const { content, version: found, sizeBytes } = /** @type {Piece} */ (piece);
        const bytes = Buffer.from(content, "base64");
        pieces.push(bytes);
        offset += bytes.length;
        if (offset >= sizeBytes || bytes.length === 0) return Buffer.concat(pieces);
        // The pieces are of one version, also when a newer one appears meanwhile.
        known = { version: found };
      }
    },

    abandon: () => channel.abandon(),
  });
}

// The worker closes the channel at a payload of another form: a mistake shall cost its own call.

/** @param {ChainStep} step */
function stepOf({ tool, args = {}, usePrevious = false }) {
  return { toolId: text("tool", tool), args: argsOf(args), usePrevious: Boolean(usePrevious) };
}

/**
 * Arguments as the tool gets them.
 *
 * @param {object} args
 */
function argsOf(args) {
  let json;
  try {
    json = encode(args);
  } catch (error) {
    throw error instanceof NotJson ? new TypeError(`args are not JSON: ${error.message}`) : error;
  }
  if (json?.startsWith("{") !== true) throw new TypeError("args must be an object");
  return JSON.parse(json);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function text(name, value) {
  if (typeof value === "string") return value;
  throw new TypeError(`${name} must be text, not ${value === null ? "null" : typeof value}`);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function count(name, value) {
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value);
  throw new TypeError(`${name} must be a whole number from 0`);
}
