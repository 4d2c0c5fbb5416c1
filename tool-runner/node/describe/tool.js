/**
 * What a tool says of itself: by members of its function, else by types and JSDoc of its source.
 * Loaded only to describe; see "Describing a tool" in tool-runner/PROTOCOL.md.
 */
import { createRequire } from "node:module";
import { describe, warn } from "../errors.js";
import { descriptionInSource } from "./source.js";

/** @import { Call } from "../protocol.js" */

/**
 * @typedef {object} Description
 * @property {string} [description]
 * @property {Schema} [parameters]
 * @property {Schema} [result]
 * @property {Schema} [config]
 */

/** @typedef {{ [keyword: string]: unknown }} Schema */

const maxDescriptionCharacters = 4_000;

/**
 * @param {Function} tool
 * @param {Pick<Call, "module" | "function" | "tools_dir">} call
 * @returns {Promise<Description>}
 */
export async function descriptionOf(tool, call) {
  const file = `${call.tools_dir}/${call.module}`;
  const found = await inSource(file, call.function);
  const said = /** @type {Function & Record<string, unknown>} */ (tool);
  const description = textOf(own(said, "description")) ?? found.description;
  const all = {
    description: description?.slice(0, maxDescriptionCharacters),
    parameters: schemaOf(own(said, "parameters"), "input", file) ?? found.parameters,
    result: schemaOf(own(said, "result"), "output", file) ?? found.result,
    config: schemaOf(own(said, "config"), "input", file),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/**
 * @param {string} file
 * @param {string} name
 */
async function inSource(file, name) {
  try {
    return await descriptionInSource(file, name);
  } catch (error) {
    // Node has run it, so that a syntax which the parser does not know is newer than the parser.
    warn(`the source cannot be read for a description: ${describe(error)}`);
    return {};
  }
}

/**
 * @param {Record<string, unknown>} tool
 * @param {string} name
 */
function own(tool, name) {
  return Object.hasOwn(tool, name) ? tool[name] : undefined;
}

/** @param {unknown} text */
function textOf(text) {
  return typeof text === "string" && text.trim() !== "" ? text : undefined;
}

/**
 * A JSON Schema as it is, or one of a schema library's object: zod's, or any that follows Standard
 * JSON Schema. Throws what the library throws.
 *
 * @param {unknown} given
 * @param {"input" | "output"} io
 * @param {string} file of the tool
 * @returns {Schema | undefined}
 */
function schemaOf(given, io, file) {
  if ((typeof given !== "object" && typeof given !== "function") || given === null) {
    return undefined;
  }
  const library = /** @type {Record<string, any>} */ (given);
  const options = { io, unrepresentable: "any", target: "draft-2020-12" };
  const standard = library["~standard"]?.jsonSchema;
  if (typeof library["toJSONSchema"] === "function") return bare(library["toJSONSchema"](options));
  if (typeof standard?.[io] === "function") return bare(standard[io](options));
  if (library["_zod"] === undefined) return bare(library);
  // An earlier zod 4 has a function for it, and the tool's own knows the descriptions.
  return bare(createRequire(file)("zod").toJSONSchema(given, options));
}

/**
 * Without what is no keyword to a reader.
 *
 * @param {Record<string, unknown>} schema
 */
function bare({ $schema: _dialect, "~standard": _standard, ...schema }) {
  return schema;
}
