/**
 * Paths that a tool's traceback names, as those of this host.
 */
import { insidePaths } from "../../worker/runners/inside-paths.ts";
import { shortPath } from "../options/typed-command.ts";
import type { ToolsLayout } from "../tools-layout.ts";

/** Where the tools of each language are; absolute. */
export type ToolsDirs = Pick<ToolsLayout, "pythonDir" | "nodeDir" | "executableDir">;

const { pythonTools, nodeTools, executables } = insidePaths;
const inside = new RegExp(
  `(?<![\\w./-])(?:file://)?(${pythonTools}|${nodeTools}|${executables})(?=/)`,
  "g",
);

/**
 * What a sandbox calls the files of tools becomes what one types in this directory, so that a
 * terminal finds them.
 */
export function toHostPaths(
  text: string,
  { pythonDir, nodeDir, executableDir }: ToolsDirs,
): string {
  const onHost: Readonly<Record<string, string>> = {
    [pythonTools]: pythonDir,
    [nodeTools]: nodeDir,
    [executables]: executableDir,
  };
  return text.replace(inside, (path, directory: string) => shortPath(onHost[directory] ?? path));
}
