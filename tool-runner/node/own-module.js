/**
 * Where this package does not lie in a `node_modules` above the tools, as in a sandbox it does:
 * what tools import as `secure-tool-runtime/tool` is here, and what they import of their own
 * packages there where TOOL_PACKAGES_DIR says. Loaded when needed.
 */
const { createRequire, isBuiltin, registerHooks } = process.getBuiltinModule("node:module");

const name = "secure-tool-runtime/tool";
const url = new URL("tool.js", import.meta.url).href;

/** The name of a package, and perhaps of a file in it; no path, no URL, no import of its own. */
const ofPackage = /^[^./#:][^:]*$/;

let isProvided = false;

/**
 * To be called before the tool is loaded. A copy that the tool's own `node_modules` has goes first.
 */
export function provideOwnModule() {
  if (isProvided) return;
  isProvided = true;
  const directory = process.env["TOOL_PACKAGES_DIR"];
  if (directory !== undefined) providePackages(directory);
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

/**
 * The packages of a directory go before those beside the tool.
 *
 * @param {string} directory a `node_modules`
 */
function providePackages(directory) {
  const { pathToFileURL } = process.getBuiltinModule("node:url");
  const above = pathToFileURL(`${directory}/`).href;
  const from = `${above}none.js`;
  const { resolve } = createRequire(from);
  registerHooks({
    resolve: (specifier, context, next) => {
      const isTheirs = ofPackage.test(specifier) && !isBuiltin(specifier);
      if (!isTheirs || context.parentURL?.startsWith(above)) return next(specifier, context);
      try {
        // Node looks from the file that requires, whatever the parent is here.
        if (context.conditions.includes("require")) return next(resolve(specifier), context);
        return next(specifier, { ...context, parentURL: from });
      } catch {
        return next(specifier, context);
      }
    },
  });
}
