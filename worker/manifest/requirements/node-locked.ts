/**
 * Entries of a package-lock.json: the members that `npm ci` needs, each checked, and no other.
 */
import { isRecord } from "../../support/json/yaml-document.ts";
import { isNodePackageName, isNodeRange, parseNodeRequirement } from "./node.ts";

/** An entry that is refused; the message is public. */
export class NodeLockError extends Error {
  override readonly name = "NodeLockError";
}

/** An entry below `packages`, without `integrity` and `inBundle`. */
export interface LockedPackage {
  readonly name: string;
  /** For npm. */
  readonly members: Readonly<Record<string, unknown>>;
}

/** Longest path of an entry, in characters. */
const maxPathLength = 2_000;

type Check = (value: unknown) => boolean;

const isFlag: Check = (value) => typeof value === "boolean";
const isText: Check = (value) => typeof value === "string" && !/\p{Cc}/u.test(value);
const isList =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isMap =
  (check: (key: string, value: unknown) => boolean): Check =>
  (value) =>
    isRecord(value) && Object.entries(value).every(([key, member]) => check(key, member));
/** Also what another name stands for: `npm:name@range`. */
const isDependency = (name: string, range: unknown): boolean =>
  isNodePackageName(name) &&
  typeof range === "string" &&
  (isNodeRange(range) ||
    (/^npm:/.test(range) && parseNodeRequirement(range.slice(4)) !== undefined));
/** A program of the package: no path that leaves it. */
const isProgram = (name: string, path: unknown): boolean =>
  isNodePackageName(name) &&
  typeof path === "string" &&
  !/\p{Cc}|^\/|(?:^|\/)\.\.(?:\/|$)/u.test(path);
const isOptional = (name: string, value: unknown): boolean =>
  isNodePackageName(name) && isMap((key, flag) => key === "optional" && isFlag(flag))(value);

/** What npm gets of an entry as it is. Other members go, such as `license` and `engines`. */
const kept: Readonly<Record<string, Check>> = {
  dependencies: isMap(isDependency),
  optionalDependencies: isMap(isDependency),
  peerDependencies: isMap(isDependency),
  peerDependenciesMeta: isMap(isOptional),
  bundleDependencies: isList((name) => typeof name === "string" && isNodePackageName(name)),
  bin: isMap(isProgram),
  os: isList(isText),
  cpu: isList(isText),
  libc: isList(isText),
  dev: isFlag,
  optional: isFlag,
  devOptional: isFlag,
  peer: isFlag,
  hasInstallScript: isFlag,
};

/** The dependencies of the project that a lock is of, without those for its development. */
export function readLockedRoot(root: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(root)) throw new NodeLockError('has no entry "" in packages');
  const wanted: Record<string, unknown> = { name: "environment", version: "0.0.0" };
  for (const key of ["dependencies", "optionalDependencies"]) {
    if (root[key] === undefined) continue;
    if (!isMap(isDependency)(root[key]))
      throw new NodeLockError(
        `${key} of the project: accepted are semver ranges, also of another name (npm:name@range)`,
      );
    wanted[key] = root[key];
  }
  return wanted;
}

/** Reads an entry by its path in the lock. Throws NodeLockError. */
export function readLockedPackage(path: string, entry: unknown): LockedPackage {
  if (path.length > maxPathLength)
    throw new NodeLockError(`has a path of more than ${maxPathLength} characters`);
  const [, last = ""] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
  if (!isRecord(entry) || !/^node_modules\//.test(path) || /(?:^|\/)\.{0,2}(?:\/|$)/.test(path))
    throw new NodeLockError(`"${path}" is not below node_modules`);
  if (entry["link"] === true) throw new NodeLockError(`"${path}" is a link`);
  if (entry["hasShrinkwrap"] === true)
    throw new NodeLockError(`"${path}" has packages of its own npm-shrinkwrap.json`);
  const { name = last, resolved, version } = entry;
  if (typeof name !== "string" || !isNodePackageName(name) || !isNodePackageName(last))
    throw new NodeLockError(`"${path}" has no name of a package`);
  if (typeof version !== "string" || !isNodeRange(version) || !/^\d/.test(version))
    throw new NodeLockError(`"${path}" has no version of a registry`);
  if (resolved !== undefined && !isUrl(resolved))
    throw new NodeLockError(`"${path}" is not from a registry`);
  const members: Record<string, unknown> = { version, ...(name !== last && { name }) };
  for (const [key, check] of Object.entries(kept)) {
    if (entry[key] === undefined) continue;
    if (!check(entry[key]))
      throw new NodeLockError(`"${path}" has "${key}" with a value that is refused`);
    members[key] = entry[key];
  }
  return { name, members };
}

function isUrl(resolved: unknown): boolean {
  return typeof resolved === "string" && /^https?:\/\/\S+$/.test(resolved);
}
