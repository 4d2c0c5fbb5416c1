/**
 * Formats command lines for people: this package's commands, words and paths.
 */
import { realpathSync } from "node:fs";
import { delimiter, dirname, join, relative, resolve, sep } from "node:path";
import type { Environment } from "../../worker/config/config.ts";
import { isCheckout } from "../package.ts";

const npxCache = `${sep}_npx${sep}`;
const localBin = join("node_modules", ".bin");

/**
 * The beginning of a command line, ready to be pasted in the current directory.
 *
 * @param name what npm calls the command
 * @param path its file in this package
 */
export function typedCommand(name: string, path: string, environment: Environment): string {
  if (isCheckout) return quote(shortPath(path));
  const isOurs = (directory: string): boolean => isSameFile(join(directory, name), path);
  if (path.includes(npxCache)) return `npx --package secure-tool-runtime ${name}`;
  if (upwards(resolve("")).some((directory) => isOurs(join(directory, localBin)))) {
    return `npx ${name}`;
  }
  // npx and npm scripts put directories onto the path that the user's shell does not have.
  const searched = (environment["PATH"] ?? "").split(delimiter);
  const found = searched.some((directory) => !directory.endsWith(localBin) && isOurs(directory));
  return found ? name : quote(shortPath(path));
}

function upwards(directory: string): readonly string[] {
  const parent = dirname(directory);
  return parent === directory ? [directory] : [directory, ...upwards(parent)];
}

function isSameFile(link: string, path: string): boolean {
  try {
    return realpathSync(link) === realpathSync(path);
  } catch {
    return false; // there is no such command
  }
}

/** One word of a POSIX shell command. */
export function quote(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A path to type in the current directory: relative below it, otherwise absolute. */
export function shortPath(path: string): string {
  const short = relative("", path);
  return short === "" || short.startsWith(`..${sep}`) || short === ".." ? path : short;
}
