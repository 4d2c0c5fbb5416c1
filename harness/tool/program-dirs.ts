/**
 * Directories for programs whose language has no tools.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Environment } from "../../worker/config/config.ts";
import type { Manifest } from "../../worker/manifest/manifest.ts";
import { parseManifest } from "../../worker/manifest/parse.ts";
import type { ProgramLanguage } from "../../worker/protocol/tool-calls/program.ts";
import { type ToolsLayout, isDirectory } from "../tools-layout.ts";
import { readProfiles } from "./profiles.ts";

/** Where the tools of each language are. */
const places: Record<ProgramLanguage, "pythonDir" | "nodeDir"> = {
  ...{ python: "pythonDir", typescript: "nodeDir", javascript: "nodeDir" },
};

/**
 * The layout with an empty directory in `home` in place of each missing one in whose language the
 * manifest's entries run programs: a worker serves no language without a directory.
 */
export async function withProgramDirs(
  layout: ToolsLayout,
  home: string,
  environment: Environment,
): Promise<ToolsLayout> {
  const profileNames = [...(await readProfiles(environment)).keys()];
  const manifest = await readManifest(layout.manifestPath, profileNames);
  const languages = [...(manifest?.tools.values() ?? [])].flatMap((tool) => tool.languages ?? []);
  const empty = join(home, "no-tools");
  let filled = layout;
  for (const place of new Set(languages.map((language) => places[language]))) {
    if (await isDirectory(layout[place])) continue;
    await mkdir(empty, { recursive: true });
    filled = { ...filled, [place]: empty };
  }
  return filled;
}

/** Undefined for one that cannot be read; opening it tells why. */
async function readManifest(
  path: string,
  profileNames: readonly string[],
): Promise<Manifest | undefined> {
  try {
    return parseManifest(await readFile(path), { path, profileNames }).manifest;
  } catch {
    return undefined;
  }
}
