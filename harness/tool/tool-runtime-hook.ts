/**
 * For `node --import`: lets a test outside of a sandbox import `secure-tool-runtime/tool` where
 * nothing is installed.
 */
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { nodeToolModule } from "../package.ts";

const name = "secure-tool-runtime/tool";

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === name ? pathToFileURL(nodeToolModule).href : specifier, context),
});
