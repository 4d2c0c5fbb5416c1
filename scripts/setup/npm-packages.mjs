/**
 * Brings node_modules in line with package-lock.json, the project's own Node among it.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { SetupError, say } from "./report.mjs";

/** A registry that fails this often is down, not busy; npm retries single requests by itself. */
const attempts = 2;

/**
 * For the first attempt: a registry that does not answer is asked again after a minute, not after npm's five. The last
 * attempt has npm's own patience, for lines on which a package takes longer.
 */
const impatience = ["--fetch-timeout=60000", "--fetch-retries=4"];

/**
 * Whether node_modules holds what package-lock.json asks for. npm keeps the list of what it installed in
 * node_modules/.package-lock.json, whichever command installed it, and removes it while it is at work.
 */
export function npmPackagesAreCurrent(root) {
  const installed = readPackages(join(root, "node_modules", ".package-lock.json"));
  if (installed === undefined || !existsSync(ownNode(root))) return false;
  const wanted = readPackages(join(root, "package-lock.json")) ?? {};
  const isCurrent = ([path, entry]) =>
    installed[path] === undefined
      ? entry.optional === true // for another platform
      : installed[path].version === entry.version && installed[path].integrity === entry.integrity;
  return (
    Object.entries(wanted).every(isCurrent) &&
    Object.keys(installed).every((path) => wanted[path] !== undefined)
  );
}

/** Runs `npm ci`. Throws SetupError when the packages are not there afterwards. */
export function installNpmPackages(root) {
  say("installing the npm packages of package-lock.json (npm ci)");
  // Development packages are what demo and tests run with, whatever NODE_ENV says.
  const args = ["ci", "--include=dev", "--loglevel=error"];
  for (let attempt = 1; ; attempt += 1) {
    const options = attempt < attempts ? impatience : [];
    const npm = spawnSync("npm", [...args, ...options], {
      cwd: root,
      env: { ...process.env, PATH: pathWithoutProject(root) },
      stdio: ["ignore", "inherit", "inherit"],
    });
    if (npm.error) throw new SetupError(`cannot run npm: ${npm.error.message}`);
    if (npm.status === 0) break;
    if (attempt === attempts) {
      throw new SetupError(`npm ci failed ${attempts} times; its messages are above`);
    }
  }
  if (!existsSync(ownNode(root))) {
    throw new SetupError(
      "npm did not run the install script of the package node, which puts Node 24 in place. " +
        "Run: npm rebuild node --ignore-scripts=false",
    );
  }
}

function ownNode(root) {
  return join(root, "node_modules", "node", "bin", "node");
}

/** The entries of a lock file but the project's own; undefined when the file is absent or cut off. */
function readPackages(file) {
  try {
    const { "": _project, ...packages } = JSON.parse(readFileSync(file, "utf8")).packages;
    return packages;
  } catch {
    return undefined;
  }
}

/** npm must not run on the Node that it is about to replace, which npm scripts have first on their path. */
function pathWithoutProject(root) {
  const own = join(root, "node_modules", ".bin");
  return (process.env.PATH ?? "")
    .split(delimiter)
    .filter((directory) => directory !== own)
    .join(delimiter);
}
