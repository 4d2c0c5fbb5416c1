/**
 * What tools of every language find around them: variables and program directories.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import { isSystemPath } from "../support/files/system-paths.ts";
import type { CodeSource } from "./runner.ts";

/**
 * Files that sandboxes have of the host one by one. Where another file takes the place of one, such
 * as a new list of name servers, a sandbox that was made before has the old one.
 */
export const hostFiles: readonly CodeSource[] = [
  ...["/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf"],
  ...["/etc/localtime", "/etc/ld.so.cache"],
].map((path) => ({ path, depth: "listing" }));

/**
 * Names the directory of a tool's own packages, for backends that mount nothing where a language
 * looks for them.
 */
export const packagesVariable = "TOOL_PACKAGES_DIR";

/** Where programs are looked for inside. */
export const basePath = "/usr/local/bin:/usr/bin:/bin";

/**
 * The whole environment of a call of `tool`.
 *
 * @param programDirectories directories inside of the language's interpreter and of the tool's
 *   packages, which come first where they are not the system's
 * @param own variables of the language
 * @param workerEnvironment the worker's variables, of which the tool gets those that its manifest
 *   entry names
 */
export function toolEnvironment(
  tool: Pick<ToolEntry, "env">,
  programDirectories: readonly string[],
  own: Readonly<Record<string, string>>,
  workerEnvironment: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, string> {
  const ahead = programDirectories.filter((directory) => !isSystemPath(directory));
  const environment = new Map([
    ["PATH", [...ahead, basePath].join(":")],
    ["HOME", "/tmp"],
    ["TMPDIR", "/tmp"],
    ["LANG", "C.UTF-8"],
    ...Object.entries(own),
  ]);
  for (const name of tool.env) {
    const value = workerEnvironment[name];
    if (value !== undefined) environment.set(name, value);
  }
  return environment;
}
