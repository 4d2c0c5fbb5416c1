/**
 * Paths that a tool's traceback names, as those of this host.
 */
import { insidePaths } from "../../worker/runners/inside-paths.ts";
import { shortPath } from "../options/typed-command.ts";

/** Where the tools of each language are; absolute. */
export interface ToolsDirs {
  readonly pythonDir: string;
  readonly nodeDir: string;
}

const inside = new RegExp(
  `(?<![\\w./-])(?:file://)?(${insidePaths.pythonTools}|${insidePaths.nodeTools})(?=/)`,
  "g",
);

/**
 * What a sandbox calls the files of tools becomes what one types in this directory, so that a
 * terminal finds them.
 */
export function toHostPaths(text: string, { pythonDir, nodeDir }: ToolsDirs): string {
  return text.replace(inside, (_, directory: string) =>
    shortPath(directory === insidePaths.pythonTools ? pythonDir : nodeDir),
  );
}
