/**
 * The backend that docs/runtime.md shows, as it stands there.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";

/** Makes a backend; the default command is a sandbox. */
export type OwnBackend = (kind: string, argv?: readonly string[]) => RuntimeBackend;

const page = new URL("../../../docs/runtime.md", import.meta.url);
const library = new URL("../../../worker/runtime.ts", import.meta.url);

/** The function of the page's code, with the package's name replaced by its source. */
export async function documentedBackend(): Promise<OwnBackend> {
  const text = await readFile(page, "utf8");
  const [, code] = /```ts\n\/\/ own-backend\.ts\n([\s\S]*?)```/.exec(text) ?? [];
  if (code === undefined) throw new Error("docs/runtime.md has no own-backend.ts");
  const directory = await mkdtemp(join(import.meta.dirname, ".own-backend-"));
  try {
    const path = join(directory, "own-backend.ts");
    await writeFile(path, code.replace('"secure-tool-runtime/runtime"', `"${library.href}"`));
    const { ownBackend } = (await import(path)) as { readonly ownBackend: OwnBackend };
    return ownBackend;
  } finally {
    await rm(directory, { recursive: true });
  }
}
