/**
 * The entry of a manifest by which a program runs: one that is there, or one of its own, which may
 * call all tools that allow programs.
 */
import { readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { parseDocument } from "yaml";
import { type Manifest, ManifestError, toolIdOf } from "../../../worker/manifest/manifest.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";
import type { ProgramLanguage } from "../../../worker/protocol/tool-calls/program.ts";
import { parseToolId } from "../../../worker/protocol/tool-calls/tool-id.ts";
import { type Context, UsageError } from "../../context.ts";
import { type ToolsLayout, hasManifest, layoutOf } from "../../tools-layout.ts";
import { readProfiles } from "../profiles.ts";

/** Options that say which tools a program may call. */
export interface ProgramEntryFlags {
  /** A manifest or its directory; the program calls no tools unless given. */
  readonly with?: string;
  /** Name of an entry with `runtime: code`. */
  readonly as?: string;
}

/** Where the entry is. */
export interface ProgramEntry {
  readonly layout: ToolsLayout;
  readonly name: string;
}

const emptyManifest = "version: 1\ntools: {}\n";
const ownName = "program";

/**
 * Finds the entry, or writes a manifest with one into `home`. Throws UsageError where no entry runs
 * the language, or several do.
 */
export async function programEntry(
  language: ProgramLanguage,
  flags: ProgramEntryFlags,
  home: string,
  { environment }: Context,
): Promise<ProgramEntry> {
  const { text: givenText, layout } = await readGiven(flags, home);
  const profileNames = [...(await readProfiles(environment)).keys()];
  const manifest = parse(givenText, layout.manifestPath, profileNames);
  const name = entryOf(manifest, language, flags);
  if (name !== undefined) return { layout, name };
  const manifestPath = join(home, "manifest.yaml");
  const [own, text] = withOwnEntry(givenText, manifest, language);
  await writeFile(manifestPath, text);
  return { layout: { ...layout, manifestPath }, name: own };
}

async function readGiven({ with: given, as }: ProgramEntryFlags, home: string) {
  if (given === undefined) {
    if (as !== undefined) throw new UsageError("--as is for an entry of a manifest; add --with");
    const none = join(home, "none");
    const layout = { pythonDir: none, nodeDir: none, executableDir: none };
    return { text: emptyManifest, layout: { manifestPath: "manifest.yaml", ...layout } };
  }
  const directory = basename(given) === "manifest.yaml" ? dirname(given) : given;
  if (!(await hasManifest(directory))) throw new UsageError(`${directory} has no manifest.yaml`);
  const layout = await layoutOf(directory);
  return { text: await readFile(layout.manifestPath, "utf8"), layout };
}

function parse(text: string, path: string, profileNames: readonly string[]): Manifest {
  try {
    return parseManifest(Buffer.from(text), { path, profileNames }).manifest;
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}

/** The name of the one that is meant; undefined for a manifest without any. */
function entryOf(
  { tools }: Manifest,
  language: ProgramLanguage,
  { with: given, as }: ProgramEntryFlags,
): string | undefined {
  const entries = [...tools.values()].filter(({ languages }) => languages !== undefined);
  if (entries.length === 0 && as === undefined) return undefined;
  const listed = entries.map(({ name, languages }) => `${name} (${languages?.join(", ")})`);
  const there = `entries with runtime code: ${listed.join(", ") || "none"}`;
  const fitting = entries.filter(
    ({ name, languages }) => languages?.includes(language) && (as ?? name) === name,
  );
  const [entry] = fitting;
  if (entry === undefined) {
    const who = as ?? `no entry of ${given}`;
    throw new UsageError(`${who} ${as ? "does not run" : "runs"} ${language}; ${there}`);
  }
  if (fitting.length > 1) throw new UsageError(`choose an entry with --as; ${there}`);
  return entry.name;
}

/** The manifest's text with an entry for the program, and the entry's name. */
function withOwnEntry(
  text: string,
  { tools, unavailable }: Manifest,
  language: ProgramLanguage,
): readonly [name: string, text: string] {
  let name = ownName;
  while (tools.has(name) || unavailable.has(name)) name += "_";
  const ids = [...tools.values()]
    .filter(({ catalog }) => catalog.allowedCallers.has("programmatic"))
    .map(toolIdOf);
  const patterns = ids.map((id) => {
    const namespace = parseToolId(id)?.namespace ?? "";
    return namespace === "" ? id : `${namespace}:*`;
  });
  const callable = [...new Set(patterns)];
  const entry = {
    runtime: "code",
    languages: [language],
    ...(callable.length > 0 && { gateway: { tools: callable } }),
  };
  // A document keeps numbers as they are written, such as the Python 3.10.
  const document = parseDocument(text);
  document.setIn(["tools", name], document.createNode(entry));
  return [name, document.toString()];
}
