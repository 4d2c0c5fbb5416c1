/**
 * Where this package does not lie in a `node_modules` above the tools, as in a sandbox it does:
 * what tools import as `secure-tool-runtime/tool` is here. Loaded when needed.
 */
const { registerHooks } = process.getBuiltinModule("node:module");

const name = "secure-tool-runtime/tool";
const url = new URL("tool.js", import.meta.url).href;

/**
 * To be called before the tool is loaded. A copy that the tool's own `node_modules` has goes first.
 */
export function provideOwnModule() {
  registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier !== name) return next(specifier, context);
      try {
        return next(specifier, context);
      } catch {
        return { url, format: "module", shortCircuit: true };
      }
    },
  });
}
