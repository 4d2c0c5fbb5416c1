/**
 * How generators of random numbers are seeded anew, and functions that draw replaced.
 */
const { randomBytes } = process.getBuiltinModule("node:crypto");
const { setFlagsFromString } = process.getBuiltinModule("node:v8");
const { defineProperties, defineProperty, getOwnPropertyDescriptors } = Object;

/** The largest seed that V8 takes; it draws one itself where it is 0. */
const maxSeed = 0x7fff_ffff;

/** @typedef {(this: any, ...given: any[]) => any} Draw */

/**
 * Has V8 seed the `Math.random` of a context that nothing has drawn from yet.
 *
 * @param {() => unknown} draw draws from it
 */
export function seedBy(draw) {
  setFlagsFromString(`--random-seed=${1 + (randomBytes(4).readUInt32LE() % maxSeed)}`);
  try {
    draw();
  } catch {
    // The context has something else by that name.
  }
  // Threads that begin later have seeds of their own.
  setFlagsFromString("--random-seed=0");
}

/**
 * Puts a function in the place of another, with all that one sees of it. Returns the other one.
 *
 * @param {object} owner
 * @param {string} name
 * @param {Draw} made
 * @returns {Draw}
 */
export function standIn(owner, name, made) {
  const own = Reflect.get(owner, name);
  const { prototype: _, ...looks } = getOwnPropertyDescriptors(own);
  defineProperty(owner, name, { value: defineProperties(made, looks) });
  return own;
}
