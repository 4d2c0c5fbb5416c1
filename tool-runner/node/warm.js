/**
 * Fills Node's compile cache with a tool's module and what it imports: `main.js --warm MODULE_FILE
 * CACHE_DIR`.
 */
import { constants, enableCompileCache, flushCompileCache } from "node:module";
import { describe, warn } from "./errors.js";

/**
 * Imports a module with the cache on, which runs it, writes the cache and ends the process: with
 * status 0, or 1 where the cache cannot be used or the module cannot be imported. What was compiled
 * until then is in the cache.
 *
 * @param {string} moduleUrl with the path that the module has in the calls that the cache is for
 * @param {string} cacheDir where NODE_COMPILE_CACHE is not set
 */
export async function warm(moduleUrl, cacheDir) {
  const { status, message } = enableCompileCache(cacheDir);
  const { ENABLED, ALREADY_ENABLED } = constants.compileCacheStatus;
  if (status !== ENABLED && status !== ALREADY_ENABLED) {
    warn(`the compile cache cannot be used: ${message}`);
    process.exit(1);
  }
  try {
    await import(moduleUrl);
  } catch (error) {
    warn(`the module cannot be imported: ${describe(error)}`);
    process.exitCode = 1;
  }
  flushCompileCache();
  process.exit();
}
