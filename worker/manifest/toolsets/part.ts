/**
 * The manifest of one toolset, as a part of the worker's.
 */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { formatProblem } from "../../support/file-problems.ts";
import { type Manifest, ManifestError, type ToolEntry } from "../manifest.ts";
import { type ParseOptions, parseManifest } from "../parse.ts";
import { ToolsetError, toolsetLimits } from "./budget.ts";

/** The file of a toolset that lists its tools. */
export const toolsetManifest = "manifest.yaml";
/** Between the name of a toolset and that of its tool. */
const separator = "__";

/** The tools of a toolset. */
export interface ToolsetPart {
  readonly name: string;
  /** Identifies the toolset's content. */
  readonly revision: string;
  /** Its tools by the names that they have on the broker. */
  readonly manifest: Pick<Manifest, "tools" | "unavailable">;
  /** One line each, with its position. */
  readonly warnings: readonly string[];
}

/** What manifests of toolsets are parsed with. */
export type PartOptions = Pick<ParseOptions, "profileNames" | "queues" | "runsExecutables">;

/**
 * Whether a name is one of a toolset. It has no `__` and ends in no `_`, so that a tool's name
 * belongs to one toolset only.
 */
export function isToolsetName(name: string): boolean {
  return (
    /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,48}[A-Za-z0-9-])?$/.test(name) && !name.includes(separator)
  );
}

/**
 * Reads the manifest of a toolset from the worker's copy. Throws ToolsetError, with all problems;
 * the system's error.
 */
export async function readPart(
  {
    name,
    revision,
    directory,
  }: { readonly name: string; readonly revision: string; readonly directory: string },
  options: PartOptions,
): Promise<ToolsetPart> {
  const path = `${name}/${toolsetManifest}`;
  const bytes = await readManifest(join(directory, toolsetManifest));
  try {
    const prefix = name + separator;
    const { manifest, warnings } = parseManifest(bytes, { ...options, path, prefix });
    const own = (entry: ToolEntry): ToolEntry => ({ ...entry, toolset: { name, revision } });
    const tools = new Map(Array.from(manifest.tools, ([tool, entry]) => [tool, own(entry)]));
    return {
      name,
      revision,
      manifest: { tools, unavailable: manifest.unavailable },
      warnings: warnings.map((warning) => formatProblem(path, warning)),
    };
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    throw new ToolsetError(`has a manifest that cannot be used: ${error.message}`, {
      cause: error,
    });
  }
}

/** The copy has plain files and directories only, and does not change. */
async function readManifest(path: string): Promise<Uint8Array> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new ToolsetError(`has no ${toolsetManifest}`);
    throw error;
  });
  if (!stats.isFile()) throw new ToolsetError(`has a ${toolsetManifest} that is no file`);
  if (stats.size > toolsetLimits.manifestBytes)
    throw new ToolsetError(
      `has a ${toolsetManifest} that is larger than ${toolsetLimits.manifestBytes} bytes`,
    );
  return readFile(path);
}
