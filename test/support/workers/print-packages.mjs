/**
 * For `node --import`: prints the name of each package that a process loads, and of each thread
 * that it starts, one line each. What threads load does not come here.
 */
import { registerHooks } from "node:module";

const printed = new Set();

registerHooks({
  resolve(specifier, context, next) {
    const name = /^(?:@[^/]+\/)?[\w.-]+/.exec(specifier)?.[0];
    if (name !== undefined && !specifier.startsWith("node:") && !printed.has(name)) {
      printed.add(name);
      process.stderr.write(`package ${name}\n`);
    }
    return next(specifier, context);
  },
});

process.on("worker", ({ threadName }) => process.stderr.write(`thread ${threadName}\n`));
