/**
 * Random numbers of contexts of `node:vm`: each has a `Math.random` of its own, which V8 seeds from
 * a generator that all children of a template share.
 */
import { seedBy, standIn } from "./seeding.js";

const vm = process.getBuiltinModule("node:vm");
const { createContext, isContext, runInContext, runInNewContext, Script } = vm;
const { runInNewContext: runScript } = Script.prototype;
const { apply } = Reflect;

/** Seeds contexts as they are made in a child. */
export class Contexts {
  #isImporting = true;
  #wereMade = false;

  constructor() {
    const create = (/** @type {any} */ object, /** @type {any} */ options) =>
      this.#create(object, options);
    standIn(vm, "createContext", create);
    // They create a context where they do not get one.
    standIn(vm, "runInNewContext", (code, object, options) =>
      runInNewContext(code, create(object, contextOptions(options)), options),
    );
    standIn(Script.prototype, "runInNewContext", function (object, options) {
      return apply(runScript, this, [create(object, contextOptions(options)), options]);
    });
  }

  /**
   * To be called after the import. Says why children would share random numbers, where they would.
   *
   * @returns {string | undefined}
   */
  release() {
    this.#isImporting = false;
    return this.#wereMade ? "it has made contexts of node:vm" : undefined;
  }

  /**
   * @param {any} object
   * @param {any} options
   */
  #create(object, options) {
    if (typeof object === "object" && object !== null && isContext(object)) return object;
    const context = createContext(object, options);
    if (this.#isImporting) this.#wereMade = true;
    else seedBy(() => runInContext("Math.random()", context));
    return context;
  }
}

/**
 * Options for a context, of those of `runInNewContext`.
 *
 * @param {any} options
 */
function contextOptions({ contextName, contextOrigin, contextCodeGeneration, microtaskMode } = {}) {
  return {
    name: contextName,
    origin: contextOrigin,
    codeGeneration: contextCodeGeneration,
    microtaskMode,
  };
}
