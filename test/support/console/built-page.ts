/** The page as `npm run build` makes it, in a temporary directory of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildConsole } from "../../../scripts/console-page.ts";

export interface BuiltPage extends AsyncDisposable {
  readonly directory: string;
}

export async function builtPage(): Promise<BuiltPage> {
  const directory = await mkdtemp(join(tmpdir(), "console-page-"));
  await buildConsole(directory);
  return {
    directory,
    async [Symbol.asyncDispose]() {
      await rm(directory, { recursive: true });
    },
  };
}
