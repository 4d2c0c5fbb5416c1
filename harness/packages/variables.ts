/**
 * The worker's variables of packages, for workers on a developer's machine.
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

function usualDirectory({ HOME, XDG_CACHE_HOME }: Environment): string {
  const cache = XDG_CACHE_HOME || (HOME && join(HOME, ".cache"));
  if (process.getuid?.() === 0 || !cache) return shared;
  return join(cache, "secure-tool-runtime", "environments");
}
