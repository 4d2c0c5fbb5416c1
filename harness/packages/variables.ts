/**
 * The worker's variables of packages, for workers on a developer's machine, and what stays there
 * between runs.
 */
import { join } from "node:path";
import type { Environment } from "../../worker/config/config.ts";

const shared = "/var/cache/secure-tool-runtime/environments";

/**
 * The variables of packages of our own environment, with a directory that stays between runs: in
 * the user's cache, or where sandboxes of a worker of root can pass.
 */
export function packageSettings(environment: Environment): Environment {
  const given = Object.entries(environment).filter(
    ([name, value]) => /^PACKAGE_|^TOOLS_WHEELS_DIR$/.test(name) && value !== "",
  );
  return { PACKAGE_DIR: usualDirectory(environment), ...Object.fromEntries(given) };
}

/** Our directory in the user's cache; undefined where the environment names none. */
export function cacheDirectory({ HOME, XDG_CACHE_HOME }: Environment): string | undefined {
  const cache = XDG_CACHE_HOME || (HOME && join(HOME, ".cache"));
  return cache ? join(cache, "secure-tool-runtime") : undefined;
}

function usualDirectory(environment: Environment): string {
  const cache = cacheDirectory(environment);
  return process.getuid?.() === 0 || !cache ? shared : join(cache, "environments");
}
