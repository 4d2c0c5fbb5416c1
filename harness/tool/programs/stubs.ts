/**
 * `harness tool stubs`: types of the tools that an entry of a manifest may call.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CatalogTool } from "../../../worker/gateway/catalog.ts";
import { pythonStubs } from "../../../worker/gateway/stubs/python.ts";
import { type StubOptions, stubTitle } from "../../../worker/gateway/stubs/text.ts";
import { typescriptStubs } from "../../../worker/gateway/stubs/typescript.ts";
import { CommandError, type Context, UsageError, exit } from "../../context.ts";
import { printable } from "../../invoke/screen.ts";
import { type StubLanguage, languagesOf, stubLanguagesOf } from "./languages.ts";
import { type ManifestFlags, readToolsInScope } from "./tools-in-scope.ts";

/** The command line, without the entry's name. */
export interface StubsOptions extends ManifestFlags {
  /** Those of the entry unless given. */
  readonly language?: StubLanguage;
  /** Directory of the file. */
  readonly out: string;
}

type Stubs = (tools: Iterable<CatalogTool>, options: StubOptions) => string;

/** Endings of files, and what they contain. */
const kinds: Record<StubLanguage, readonly [string, Stubs]> = {
  typescript: [".d.ts", typescriptStubs],
  python: [".pyi", pythonStubs],
};

/** Writes a file for each language and prints its path. Throws UsageError and CommandError. */
export async function writeStubs(
  name: string,
  options: StubsOptions,
  context: Context,
): Promise<number> {
  const { entry, tools } = await readToolsInScope(name, options, context);
  const { language } = options;
  const languages = language === undefined ? stubLanguagesOf(languagesOf(entry)) : [language];
  for (const each of languages) {
    const [ending, stubsOf] = kinds[each];
    // A module's name has no other characters.
    const path = join(options.out, `${name.replaceAll(/\W/g, "_")}_tools${ending}`);
    await write(path, stubsOf(tools, { forPrograms: entry.languages !== undefined }));
    context.out.line(printable(path));
  }
  return exit.success;
}

/** Stubs may be written again; no other file is overwritten. */
async function write(path: string, text: string): Promise<void> {
  try {
    const [first = ""] = ((await contentOf(path)) ?? stubTitle).split("\n", 1);
    if (!first.endsWith(stubTitle)) throw new UsageError(`${path} is there and has no stubs`);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error;
    throw new CommandError(`${path} cannot be written: ${error.message}`, { cause: error });
  }
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
