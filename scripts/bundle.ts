/**
 * Bundles the programs into `dist/`: Node reads a few files faster than the some two hundred of the
 * sources. Packages stay packages, with their licences and their updates.
 */
import { cp } from "node:fs/promises";
import { rolldown } from "rolldown";
import { buildConsole } from "./console-page.ts";

/** Beside it are the chunks, in which paths relative to `import.meta.url` must hold. */
const chunks = "chunks";

/** What is run or imported by its path, by that path without its extension. */
const entries = {
  "worker/main": "worker/main.ts",
  "worker/runtime": "worker/runtime.ts",
  "worker/runtime/testing": "worker/runtime/testing.ts",
  "harness/cli": "harness/cli.ts",
  "harness/client/tool-client": "harness/client/tool-client.ts",
  [`${chunks}/json-thread`]: "worker/support/json/json-thread.ts",
  [`${chunks}/check-thread`]: "worker/invocation/arguments/check-thread.ts",
  [`${chunks}/export-thread`]: "worker/telemetry/tracing/export-thread.ts",
  [`${chunks}/wasm-thread`]: "worker/runtime/wasm/wasm-thread.ts",
};

const bundle = await rolldown({
  input: entries,
  platform: "node",
  external: (id) => !id.startsWith(".") && !id.startsWith("/"),
});
await bundle.write({
  dir: "dist",
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: `${chunks}/[name]-[hash].js`,
});
await bundle.close();
// Read by its place beside the code that starts it.
for (const name of ["door.py", "inside.py", "native/x86_64.so", "native/aarch64.so"])
  await cp(`worker/sandbox/network/${name}`, `dist/${chunks}/${name}`);
await buildConsole("dist/console");
