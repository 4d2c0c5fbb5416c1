/**
 * Brings node_modules in line with package-lock.json, the project's own Node among it.
 */
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { runInstaller } from "./installer.mjs";
import { SetupError, say } from "./report.mjs";

/** A registry that fails this often is down, not busy; npm retries single requests by itself. */
const attempts = 2;

/**
 * For the first attempt: a registry that does not answer is asked again after a minute, not after
 * npm's five. The last attempt has npm's own patience, for lines on which a package takes longer.
 */
const impatience = ["--fetch-timeout=60000", "--fetch-retries=4"];

/** npm asks the registry for its own newest version, even with --offline. */
const quietly = ["--loglevel=error", "--no-update-notifier"];

/** Development packages are what demo and tests run with, whatever NODE_ENV says. */
const installLocked = ["npm", "ci", "--include=dev", ...quietly];

/** Asks npm, which knows proxies and certificates, for one of the packages. */
const askRegistry = [
  ...["npm", "view", "commander", "version", "--prefer-online", ...quietly],
  ...["--fetch-retries=0", "--fetch-timeout=15000"],
];
/** What npm's own timeout does not see, such as a name server that does not answer, ends here. */
const registryTimeoutMs = 20_000;

/**
 * Whether node_modules holds what package-lock.json asks for. npm keeps the list of what it
 * installed in node_modules/.package-lock.json, whichever command installed it, and removes it
 * while it is at work.
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

/**
 * Runs `npm ci`, from npm's cache where the registry does not answer. Throws SetupError when the
 * packages are not there afterwards.
 *
 * @param lock the descriptor that holds the checkout's lock, which npm keeps as long as it runs
 */
export async function installNpmPackages(root, lock) {
  say("installing the npm packages of package-lock.json (npm ci)");
  const npm = { cwd: root, env: { ...process.env, PATH: pathWithoutProject(root) }, lock };
  const silence = await registrySilence(npm);
  if (silence === undefined) await installFromRegistry(npm);
  else await installFromCache(npm, silence);
  if (!existsSync(ownNode(root))) {
    throw new SetupError(
      "npm did not run the install script of the package node, which puts Node 24 in place. " +
        "Run: npm rebuild node --ignore-scripts=false",
    );
  }
}

/** Why the registry gives no answer to a small question; undefined when it does. */
async function registrySilence(npm) {
  const timeoutMs = registryTimeoutMs;
  const asked = await runInstaller(askRegistry, { ...npm, captures: true, timeoutMs });
  if (asked.error) throw new SetupError(`cannot run npm: ${asked.error.message}`);
  if (asked.status === 0) return undefined;
  const reason = /^npm error (?:FetchError: )?(request to .*|\d{3} .*)$/m.exec(asked.output)?.[1];
  return reason ?? (asked.output || `nothing came in ${timeoutMs / 1_000} s`);
}

async function installFromRegistry(npm) {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const options = attempt < attempts ? impatience : [];
    const { status } = await runInstaller([...installLocked, ...options], npm);
    if (status === 0) return;
  }
  throw new SetupError(`npm ci failed ${attempts} times; its messages are above`);
}

async function installFromCache(npm, silence) {
  const { status } = await runInstaller([...installLocked, "--offline"], {
    ...npm,
    captures: true,
  });
  if (status === 0) return;
  throw new SetupError(
    `the npm registry does not answer, and npm's cache does not hold every package: ${silence}\n` +
      "Which registry npm asks: npm config get registry. Behind a proxy: npm config set https-proxy URL",
  );
}

function ownNode(root) {
  return join(root, "node_modules", "node", "bin", "node");
}

/**
 * The entries of a lock file but the project's own; undefined when the file is absent or cut off.
 */
function readPackages(file) {
  try {
    const { "": _project, ...packages } = JSON.parse(readFileSync(file, "utf8")).packages;
    return packages;
  } catch {
    return undefined;
  }
}

/**
 * npm must not run on the Node that it is about to replace, which npm scripts have first on their
 * path.
 */
function pathWithoutProject(root) {
  const own = join(root, "node_modules", ".bin");
  return (process.env.PATH ?? "")
    .split(delimiter)
    .filter((directory) => directory !== own)
    .join(delimiter);
}
