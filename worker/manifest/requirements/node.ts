/**
 * Requirements of Node tools: a package of a registry with a semver range. URLs, tags, aliases and
 * paths are refused.
 */
import validRange from "semver/ranges/valid.js";

/** Longest name of npm. */
const maxNameLength = 214;
/** Longest range, in characters. */
const maxRangeLength = 500;
const part = "[A-Za-z0-9][A-Za-z0-9._~-]*";
const packageName = new RegExp(`^(?:@${part}/)?${part}$`);

/** A package and its range. */
export interface NodeRequirement {
  readonly name: string;
  /** A semver range; `*` for any version. */
  readonly range: string;
}

/** Whether it is the name of a package, perhaps with a scope. */
export function isNodePackageName(name: string): boolean {
  return packageName.test(name) && name.length <= maxNameLength && name !== "node_modules";
}

/** Whether it is a semver range. */
export function isNodeRange(range: string): boolean {
  return range.length <= maxRangeLength && !/\p{Cc}/u.test(range) && validRange(range) !== null;
}

/** Reads `name` or `name@range`; undefined for anything else. */
export function parseNodeRequirement(text: string): NodeRequirement | undefined {
  const at = text.indexOf("@", 1);
  const name = at < 0 ? text : text.slice(0, at);
  const range = at < 0 ? "*" : text.slice(at + 1);
  if (!isNodePackageName(name) || range.trim() === "" || !isNodeRange(range)) return undefined;
  return { name, range };
}
