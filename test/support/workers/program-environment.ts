/**
 * What programs of this project get of the environment of their tests, and no more: nothing of a
 * developer's shell decides.
 */

/** Where programs are, and where Node keeps what it has compiled. */
export function programEnvironment(): Readonly<Record<string, string>> {
  const { PATH = "", NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? { PATH } : { PATH, NODE_COMPILE_CACHE };
}
