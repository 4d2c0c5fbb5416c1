/**
 * Compiles and runs scripts by V8's inspector, in this process and without a port.
 *
 * Its REPL mode is the one way that Node has to run a script with `await` at the top level and to
 * know the value of its last expression: an `eval` does not await, and a module has no value.
 */

/** @import { Runtime, Session } from "node:inspector" */

// Taken before a program, which may replace it.
const { setImmediate } = globalThis;

/**
 * A mistake in a source, by lines and columns from 1.
 *
 * @typedef {{ message: string, line: number, column: number }} SyntaxMistake
 */
/**
 * What a script came to. A place is that of a syntax error which only the run has found.
 *
 * @typedef {{ value: unknown } | { thrown: unknown, line: number, column: number }} Outcome
 */

/** Where the inspector leaves an object for us: it hands out no more than their ids. */
const handedKey = Symbol.for("secure-tool-runtime.handed");
const handOver = `function () { "use strict"; globalThis[Symbol.for("${handedKey.description}")] = this; }`;

/** Makes the text an expression that is not called. On a line of its own: columns stay. */
const before = "(async () => {\n";
const after = "\n})";

export class Evaluator {
  /** @type {Session} */
  #session;

  constructor() {
    const { Session } = process.getBuiltinModule("node:inspector");
    this.#session = new Session();
    this.#session.connect();
  }

  /**
   * The first syntax error of a script with `await` at the top level, of which nothing runs.
   *
   * @param {string} source
   * @returns {Promise<SyntaxMistake | undefined>}
   */
  async mistakeIn(source) {
    const expression = `${before}${source}${after}`;
    // Not for longer: while it is on, the inspector keeps what the console gets.
    await this.#post("Runtime.enable");
    const { exceptionDetails: details } = await this.#post("Runtime.compileScript", {
      expression,
      sourceURL: "",
      persistScript: false,
    });
    await this.#post("Runtime.disable");
    if (details === undefined) return undefined;
    const lines = source.split("\n");
    if (details.lineNumber > lines.length) {
      const column = (lines.at(-1) ?? "").length + 1;
      return { message: "SyntaxError: Unexpected end of input", line: lines.length, column };
    }
    const [message = ""] = (details.exception?.description ?? "").split("\n");
    return { message, line: details.lineNumber, column: details.columnNumber + 1 };
  }

  /**
   * Runs a script to the end of its top-level awaits. Never rejects, and does not settle while the
   * script waits.
   *
   * @param {string} source
   * @param {string} name of the script in stacks
   * @returns {Promise<Outcome>}
   */
  async run(source, name) {
    const { result, exceptionDetails: details } = await this.#post(
      "Runtime.evaluate",
      { expression: `${source}\n//# sourceURL=${name}`, replMode: true, awaitPromise: true },
      // From the event loop, so that no stack of the script has frames of the runner.
      setImmediate,
    );
    if (details === undefined) return this.#valueOf(result);
    const { value: thrown } = await this.#valueOf(details.exception ?? result);
    return { thrown, line: details.lineNumber + 1, column: details.columnNumber + 1 };
  }

  /**
   * A variable at the top level of the scripts, or a global; undefined where there is none.
   *
   * @param {string} name
   */
  async variable(name) {
    const expression = `typeof ${name} === "undefined" ? undefined : ${name}`;
    const { result } = await this.#post("Runtime.evaluate", { expression });
    return this.#valueOf(result);
  }

  /**
   * In an object: the value may be a promise.
   *
   * @param {Runtime.RemoteObject} remote
   * @returns {Promise<{ value: unknown }>}
   */
  async #valueOf({ objectId, unserializableValue, value }) {
    if (unserializableValue?.endsWith("n")) {
      return { value: BigInt(unserializableValue.slice(0, -1)) };
    }
    if (unserializableValue !== undefined) return { value: Number(unserializableValue) };
    if (objectId === undefined) return { value };
    await this.#post("Runtime.callFunctionOn", { objectId, functionDeclaration: handOver });
    const handed = { value: Reflect.get(globalThis, handedKey) };
    Reflect.deleteProperty(globalThis, handedKey);
    return handed;
  }

  /**
   * @param {string} method
   * @param {object} [parameters]
   * @param {(call: (...values: any[]) => void, ...values: unknown[]) => unknown} [start] calls it
   *   with the values, perhaps later
   * @returns {Promise<any>}
   */
  #post(method, parameters, start = (call, ...values) => call(...values)) {
    const post = this.#session.post.bind(this.#session);
    return new Promise((resolve, reject) => {
      /** @type {(error: Error | null, result: unknown) => void} */
      const settle = (error, result) => (error === null ? resolve(result) : reject(error));
      start(post, method, parameters, settle);
    });
  }
}
