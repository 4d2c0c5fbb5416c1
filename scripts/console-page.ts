/**
 * Bundles the page of the worker's console: for `npm run build`, for a worker of a source checkout,
 * and by itself: `node scripts/console-page.ts` writes `dist/console/`.
 */
import { copyFile, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = dirname(import.meta.dirname);
const sources = join(root, "console");

/** Files of the page that need no bundling, by their names in its directory. */
const copies: Readonly<Record<string, string>> = {
  "index.html": join(sources, "page.html"),
  "console.css": join(sources, "console.css"),
  "icon.svg": join(sources, "icon.svg"),
  // Its code is in console.js.
  "preact-license.txt": join(
    dirname(createRequire(import.meta.url).resolve("preact/package.json")),
    "LICENSE",
  ),
};

/** Writes the page into a directory, which it creates. */
export async function buildConsole(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const bundle = await rolldown({
    input: join(sources, "main.tsx"),
    cwd: root,
    platform: "browser",
    tsconfig: join(sources, "tsconfig.json"),
    transform: { target: "es2024" },
  });
  try {
    await bundle.write({
      file: join(directory, "console.js"),
      format: "esm",
      minify: true,
      comments: false,
      codeSplitting: false,
    });
  } finally {
    await bundle.close();
  }
  for (const [name, source] of Object.entries(copies))
    await copyFile(source, join(directory, name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildConsole(join(root, "dist/console"));
}
