/**
 * Reads a package-lock.json, and reduces it to what npm may fetch of the operator's registries.
 */
import { isNodePackageName, isNodeRange } from "../manifest/requirements/node.ts";
import { isRecord } from "../support/json/yaml-document.ts";

/** Most packages of a lockfile. */
const maxPackages = 10_000;

/** A lockfile that is refused; the message is public. */
export class NodeLockError extends Error {
  override readonly name = "NodeLockError";
}

/** The files for `npm ci`, and the names of all packages. */
export interface NodeLock {
  readonly files: ReadonlyMap<string, string>;
  readonly names: readonly string[];
}

/**
 * Reads a lockfile of version 2 or 3. Each `resolved` goes, so that npm asks the operator's
 * registries; `integrity` says what they have to give. Links, paths, git, other URLs, and entries
 * without `integrity` are refused. Throws NodeLockError.
 */
export function readNodeLock(text: string): NodeLock {
  const lock = parse(text);
  const packages = lock["packages"];
  if (!isRecord(packages) || ![2, 3].includes(Number(lock["lockfileVersion"])))
    throw new NodeLockError("expected a lockfile of version 2 or 3");
  const entries = Object.entries(packages);
  if (entries.length > maxPackages)
    throw new NodeLockError(`has more than ${maxPackages} packages`);
  const root = rootOf(packages[""]);
  const names = new Set<string>();
  const kept: Record<string, object> = { "": root };
  for (const [path, entry] of entries) {
    if (path === "") continue;
    const name = nameOf(path, entry);
    names.add(name);
    const { resolved: _dropped, ...rest } = entry as Record<string, unknown>;
    kept[path] = rest;
  }
  const manifest = JSON.stringify({ ...root, private: true });
  const content = { name: "environment", lockfileVersion: 3, requires: true, packages: kept };
  return {
    files: new Map([
      ["package.json", manifest],
      ["package-lock.json", JSON.stringify(content)],
    ]),
    names: [...names].sort(),
  };
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {
    // Said below.
  }
  throw new NodeLockError("is not JSON with a map");
}

/** The dependencies of the project that the lock is of, without those for its development. */
function rootOf(root: unknown): object {
  if (!isRecord(root)) throw new NodeLockError('has no entry "" in packages');
  const kept: Record<string, unknown> = { name: "environment", version: "0.0.0" };
  for (const key of ["dependencies", "optionalDependencies"]) {
    const wanted = root[key];
    if (wanted === undefined) continue;
    if (!isRecord(wanted)) throw new NodeLockError(`${key} is not a map`);
    for (const [name, range] of Object.entries(wanted))
      if (!isNodePackageName(name) || typeof range !== "string" || !isNodeRange(range))
        throw new NodeLockError(`${key} of "${name}" is not a semver range`);
    kept[key] = wanted;
  }
  return kept;
}

/** The package of an entry: `name`, or the end of its path below node_modules. */
function nameOf(path: string, entry: unknown): string {
  const [, last = ""] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
  if (!isRecord(entry) || !/^node_modules\//.test(path) || /(?:^|\/)\.{0,2}(?:\/|$)/.test(path))
    throw new NodeLockError(`"${path}" is not below node_modules`);
  if (entry["link"] === true) throw new NodeLockError(`"${path}" is a link`);
  if (entry["hasShrinkwrap"] === true)
    throw new NodeLockError(`"${path}" has packages of its own npm-shrinkwrap.json`);
  const { name = last, resolved, version, integrity, inBundle } = entry;
  if (typeof name !== "string" || !isNodePackageName(name) || !isNodePackageName(last))
    throw new NodeLockError(`"${path}" has no name of a package`);
  if (typeof version !== "string" || !isNodeRange(version) || !/^\d/.test(version))
    throw new NodeLockError(`"${path}" has no version of a registry`);
  if (resolved !== undefined && !isUrl(resolved))
    throw new NodeLockError(`"${path}" is not from a registry`);
  // What is bundled is in the archive of another package.
  if (inBundle !== true && (typeof integrity !== "string" || integrity === ""))
    throw new NodeLockError(`"${path}" has no integrity`);
  return name;
}

function isUrl(resolved: unknown): boolean {
  return typeof resolved === "string" && /^https?:\/\/\S+$/.test(resolved);
}
