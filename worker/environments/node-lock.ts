/**
 * Reads a package-lock.json, and reduces it to what npm may fetch of the operator's registries.
 */
import {
  NodeLockError,
  readLockedPackage,
  readLockedRoot,
} from "../manifest/requirements/node-locked.ts";
import { isRecord } from "../support/json/yaml-document.ts";

/** Most packages of a lockfile. */
const maxPackages = 10_000;

/** The digest of no archive: what has it is in the archive of another package, or fails. */
const neverFetched = `sha512-${Buffer.alloc(64).toString("base64")}`;

/** The files for `npm ci`, and the names of all packages. */
export interface NodeLock {
  readonly files: ReadonlyMap<string, string>;
  readonly names: readonly string[];
}

/**
 * Reads a lockfile of version 2 or 3. Each `resolved` goes, so that npm asks the operator's
 * registries; `integrity` says what they have to give. Links, paths, git, other URLs, and entries
 * without `integrity` are refused, but for packages in the archive of another one. Throws
 * NodeLockError.
 */
export function readNodeLock(text: string): NodeLock {
  const lock = parse(text);
  const packages = lock["packages"];
  if (!isRecord(packages) || ![2, 3].includes(Number(lock["lockfileVersion"])))
    throw new NodeLockError("expected a lockfile of version 2 or 3");
  const entries = Object.entries(packages);
  if (entries.length > maxPackages)
    throw new NodeLockError(`has more than ${maxPackages} packages`);
  const root = readLockedRoot(packages[""]);
  const names = new Set<string>();
  const kept: Record<string, object> = { "": root };
  for (const [path, entry] of entries) {
    if (path === "") continue;
    const { name, members } = readLockedPackage(path, entry);
    names.add(name);
    kept[path] = { ...members, ...sourceOf(path, packages) };
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

/** What the archive of an entry has to be, or that it is in that of a package above. */
function sourceOf(path: string, packages: Record<string, unknown>): object {
  const entry = packages[path];
  const inBundle = isRecord(entry) && entry["inBundle"] === true;
  const integrity = integrityOf(entry);
  if (integrity !== undefined) return { integrity, ...(inBundle && { inBundle }) };
  if (inBundle && isBelowBundler(path, packages)) return { inBundle, integrity: neverFetched };
  throw new NodeLockError(`"${path}" has no integrity`);
}

/** Whether a package above has others in its archive, by the words of the lock. */
function isBelowBundler(path: string, packages: Record<string, unknown>): boolean {
  for (let end = path.lastIndexOf("/node_modules/"); end > 0;) {
    const above = packages[path.slice(0, end)];
    if (isRecord(above) && Array.isArray(above["bundleDependencies"]))
      return integrityOf(above) !== undefined;
    end = path.lastIndexOf("/node_modules/", end - 1);
  }
  return false;
}

function integrityOf(entry: unknown): string | undefined {
  const integrity = isRecord(entry) ? entry["integrity"] : undefined;
  return typeof integrity === "string" && integrity !== "" ? integrity : undefined;
}
