/**
 * Runs the source text of a program in place of a tool. See tool-runner/PROTOCOL.md, "Programs".
 */
import { Failure, describe } from "../errors.js";
import { NotJson, encode } from "../json.js";
import { Evaluator } from "./evaluator.js";
import { programFailure, syntaxFailure } from "./failures.js";
import { importName, importerFrom, originalColumn, withoutImports } from "./imports.js";
import { KeptOutput } from "./output.js";
import { stripTypes } from "./types.js";

/** @import { Script } from "./failures.js" */
/** @import { Client } from "../gateway/client.js" */
/** @import { Tools } from "../tool.js" */

const gatewayKey = Symbol.for("secure-tool-runtime.gateway");

// Taken before the program, which may replace it.
const { setImmediate } = globalThis;

/** Levels of a value. The worker reads documents of 100, and there are up to three around it. */
const valueMaxDepth = 97;
/** Values that a program displays, and bytes of their JSON in all. */
const maxDisplays = 100;
const displaysMaxBytes = 256 * 1024;
/** A byte order mark, and a first line that is for a shell. */
const preamble = /^\ufeff?(?:#!.*)?/;
/** Frames of an error, in place of ten: those of libraries come before those of the program. */
const stackFrames = 50;

/**
 * @typedef {object} Program
 * @property {string} code
 * @property {string} language
 * @property {object} inputs
 * @property {string} toolsDir
 * @property {Tools} tools
 */

/** Runs one program. What needs no source can be done ahead. */
class ProgramRunner {
  #evaluator = new Evaluator();
  /** @type {Script} */
  #script = { name: "", source: "", replaced: [] };

  /** Does what takes time the first time. */
  async rehearse() {
    stripTypes("0 as number");
    await withoutImports('import "a"; await import("b");', this.#evaluator);
    await this.#evaluator.run("0", "rehearsal");
    await importerFrom(import.meta.filename)("node:module");
    await Promise.all([import("../tool.js"), import("../gateway/client.js")]);
    for (const stream of [process.stdout, process.stderr]) void stream.writable;
  }

  /**
   * The result of a program. Throws Failure for a syntax error, and what the program throws.
   *
   * @param {Program} program
   */
  async run({ code, language, inputs, toolsDir, tools }) {
    const name = language === "typescript" ? "program.ts" : "program.js";
    const source = code.replace(preamble, "");
    this.#script = { name, source, replaced: [] };
    const script = await this.#prepare(source, language);
    const stdout = new KeptOutput(process.stdout);
    const stderr = new KeptOutput(process.stderr);
    /** @type {unknown[]} */
    const displays = [];
    define("tools", tools);
    define("inputs", inputs);
    define("display", displayInto(displays));
    define(importName, importerFrom(`${toolsDir}/${name}`));
    Error.stackTraceLimit = stackFrames;
    try {
      const value = await this.#valueOf(script);
      // Node reports rejections that nothing handles before the next turn of its event loop.
      await new Promise((resolve) => setImmediate(resolve));
      return { value, stdout: stdout.text, stderr: stderr.text, displays };
    } finally {
      await cancelCalls();
    }
  }

  /** @param {string} script */
  async #valueOf(script) {
    const outcome = await this.#evaluator.run(script, this.#script.name);
    if ("thrown" in outcome) throw this.#mistakeOf(outcome) ?? outcome.thrown;
    // Programs may end with a call of an async function.
    const last = await outcome.value;
    const out = await (await this.#evaluator.variable("__out")).value;
    return out === undefined ? jsonOrNull(last) : outOf(out);
  }

  /**
   * What to answer for something that the program threw.
   *
   * @param {unknown} thrown
   */
  failureOf(thrown) {
    return programFailure(thrown, this.#script);
  }

  /**
   * @param {string} source
   * @param {string} language
   * @throws {Failure} for a syntax error
   */
  async #prepare(source, language) {
    const stripped = language === "typescript" ? stripTypes(source) : { source };
    if ("mistake" in stripped) throw syntaxFailure(stripped.mistake);
    const script = await withoutImports(stripped.source, this.#evaluator);
    if ("mistake" in script) throw syntaxFailure(script.mistake);
    this.#script.replaced = script.replaced;
    return script.source;
  }

  /**
   * A syntax error that the compiler finds only now, such as a `return` outside of a function.
   *
   * @param {{ thrown: unknown, line: number, column: number }} outcome
   */
  #mistakeOf({ thrown, line, column }) {
    if (!(thrown instanceof SyntaxError) || this.failureOf(thrown).data !== undefined) return;
    const place = { line, column: originalColumn({ line, column }, this.#script.replaced) };
    return syntaxFailure({ message: describe(thrown), ...place });
  }
}

/** Of this process, which runs one program at most. */
export const programs = new ProgramRunner();

/**
 * A global that the program may declare, too.
 *
 * @param {string} name
 * @param {unknown} value
 */
function define(name, value) {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}

/**
 * @param {unknown[]} displays gets copies
 * @returns {(value: unknown) => void}
 */
function displayInto(displays) {
  let roomBytes = displaysMaxBytes;
  return (value) => {
    const text = jsonOf(value, (reason) => new TypeError(`The value is not JSON: ${reason}`));
    const sizeBytes = Buffer.byteLength(text);
    if (displays.length === maxDisplays || sizeBytes > roomBytes) {
      const bounds = `${maxDisplays} values of ${displaysMaxBytes} bytes in all`;
      throw new RangeError(`A program displays at most ${bounds}`);
    }
    roomBytes -= sizeBytes;
    displays.push(JSON.parse(text));
  };
}

/** Cancels the calls of tools that still run, in whichever copy of the package they began. */
async function cancelCalls() {
  /** @type {{ client?: Promise<Client> }} */
  const { client } = Reflect.get(globalThis, gatewayKey);
  (await client)?.abandon();
}

/** @param {unknown} value of `__out` */
function outOf(value) {
  const failure = (/** @type {string} */ reason) =>
    new Failure("EXECUTION_ERROR", `__out is not JSON: ${reason}`);
  return JSON.parse(jsonOf(value, failure));
}

/** @param {unknown} value of a last expression */
function jsonOrNull(value) {
  try {
    return JSON.parse(jsonOf(value, (reason) => new TypeError(reason)));
  } catch {
    return null;
  }
}

/**
 * @param {unknown} value
 * @param {(reason: string) => Error} refusal of what is not JSON
 */
function jsonOf(value, refusal) {
  try {
    const text = encode(value, valueMaxDepth);
    if (text !== undefined) return text;
  } catch (error) {
    throw error instanceof NotJson ? refusal(error.message) : error;
  }
  throw refusal(`it is a ${typeof value}`);
}
