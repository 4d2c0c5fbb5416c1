/**
 * A checkout with the real set-up script and one package to install, which is not in npm's cache.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownNode, root, run, userEnvironment, type Ending } from "./processes.ts";

/**
 * Makes the checkout in `base` and sets it up with the real npm, which asks the registry at `url`.
 */
export function setUpFrom(url: string, base: string): Promise<Ending> {
  const checkout = join(base, "checkout");
  mkdirSync(checkout, { recursive: true });
  cpSync(join(root, "scripts"), join(checkout, "scripts"), { recursive: true });
  const dependencies = { node: "24.0.0" };
  const resolved = "https://registry.npmjs.org/node/-/node-24.0.0.tgz";
  const packages = {
    "": { dependencies },
    "node_modules/node": { version: "24.0.0", resolved, integrity: "sha512-AAAA" },
  };
  const lock = { lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(checkout, "package.json"), JSON.stringify({ dependencies }));
  writeFileSync(join(checkout, "package-lock.json"), JSON.stringify(lock));
  const env = userEnvironment({
    npm_config_registry: url,
    npm_config_cache: join(base, "cache"),
    npm_config_proxy: "",
    npm_config_https_proxy: "",
  });
  return run(ownNode, [join(checkout, "scripts", "setup.mjs"), "packages"], { cwd: base, env });
}
