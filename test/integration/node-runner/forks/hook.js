/**
 * `node --import hook.js main.js --park …`: the runner waits in a fork of itself, as in a child of a
 * template, but without a sandbox.
 */
import { registerHooks } from "node:module";

const inPlace = new URL("park.js", import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "./parked.js" && context.parentURL?.endsWith("/main.js") === true
      ? { url: inPlace, format: "module", shortCircuit: true }
      : next(specifier, context),
});
