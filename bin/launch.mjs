/**
 * Starts a program of this package under Node 24 or newer, looking for one when it was called with
 * an older Node.
 *
 * This file and its callers stay readable for Node 12 (no `?.`, `??`, `node:` or top-level await),
 * because a syntax error would be the old Node's only message.
 *
 * Which code runs: `dist/` when it is there, as in an installed package, else the TypeScript
 * sources, which Node 24 runs as they are. In a checkout that was built, edits show after the next
 * build; the npm scripts use the sources.
 */
import { spawn } from "child_process";
import { existsSync, readFileSync, realpathSync } from "fs";
import module from "module";
import { constants, homedir } from "os";
import { dirname, join, sep } from "path";
import { fileURLToPath, pathToFileURL } from "url";

const oldestMajor = 24;
/** EX_UNAVAILABLE of sysexits(3): a program that this one needs is not there. */
const exitUnavailable = 69;
/**
 * npm's package `node` copies its program from this one by an install script, which npm 12 does not
 * run unasked.
 */
const scriptlessPackage = "node-" + process.platform + "-" + process.arch;
/** What a service manager, a shell or a terminal sends to the process that it started. */
const forwardedSignals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"];
/**
 * Tells the newer Node that the channel to its parent is ours: nobody else's channel means anything
 * to it.
 */
const launchedMark = "STR_LAUNCHED";

const packageDirectory = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Runs `entry`, a path without its extension such as "worker/main", in this process or under a
 * newer Node. Node keeps compiled code in the user's cache directory, if that is writable: it
 * compiles for up to half of a program's start.
 */
export function launch(entry) {
  if (majorOf(process.versions.node) >= oldestMajor) {
    endWithLauncher();
    module.enableCompileCache(compileCache());
    import(pathToFileURL(findEntry(entry)).href);
    return;
  }
  const node = findNode();
  if (node === undefined) {
    process.stderr.write(whatToInstall());
    process.exit(exitUnavailable);
  }
  runUnder(node);
}

/** A directory of the user alone: Node runs the code in it. */
function compileCache() {
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(caches, "secure-tool-runtime", "compiled");
}

function findEntry(entry) {
  const built = join(packageDirectory, "dist", entry + ".js");
  return existsSync(built) ? built : join(packageDirectory, entry + ".ts");
}

/** A Node from npm beside this package or beside one that contains it, when it is new enough. */
function findNode() {
  for (const directory of directoriesUpward(packageDirectory)) {
    for (const name of ["node", scriptlessPackage]) {
      const home = join(directory, "node_modules", name);
      const node = join(home, "bin", "node");
      if (!existsSync(node) || realpathSync(node) === realpathSync(process.execPath)) continue;
      const version = JSON.parse(readFileSync(join(home, "package.json"), "utf8")).version;
      if (majorOf(version) >= oldestMajor) return node;
    }
  }
  return undefined;
}

function directoriesUpward(start) {
  const parent = dirname(start);
  return parent === start ? [start] : [start].concat(directoriesUpward(parent));
}

function majorOf(version) {
  return parseInt(version, 10);
}

/**
 * SIGKILL cannot be passed on: the channel to a launcher that it ended closes, and counts as
 * SIGTERM.
 */
function endWithLauncher() {
  if (process.env[launchedMark] === undefined || process.channel === undefined) return;
  delete process.env[launchedMark];
  process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
  process.channel.unref();
}

/**
 * Becomes `node` as far as a parent can tell: same arguments, same streams, signals passed on, same
 * ending.
 */
function runUnder(node) {
  const child = spawn(node, process.execArgv.concat(process.argv.slice(1)), {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: Object.assign({}, process.env, { [launchedMark]: "1" }),
  });
  const forward = (signal) => child.kill(signal);
  forwardedSignals.forEach((signal) => process.on(signal, forward));
  child.on("error", (error) => {
    process.stderr.write("cannot run " + node + ": " + error.message + "\n");
    process.exit(exitUnavailable);
  });
  child.on("exit", (code, signal) => {
    forwardedSignals.forEach((name) => process.removeListener(name, forward));
    // Should the signal not end this process as it ended the child, a shell's number for it does.
    process.exitCode = signal === null ? code : 128 + constants.signals[signal];
    if (signal !== null) process.kill(process.pid, signal);
  });
}

function whatToInstall() {
  const program = process.argv[1].split(sep).pop();
  return [
    program + " needs Node " + oldestMajor + " or newer; this is " + process.version,
    " (" + process.execPath + ").\n",
    "Install Node " +
      oldestMajor +
      ", or put it beside this package, where it is found without being on the PATH:\n",
    "  " + installCommand() + "\n",
  ].join("");
}

/**
 * The npm command that puts Node where `findNode` looks, for the way in which this package is
 * installed.
 */
function installCommand() {
  const nodeModules = sep + "node_modules" + sep;
  const at = packageDirectory.lastIndexOf(nodeModules);
  if (at === -1) return "cd " + packageDirectory + " && npm ci";
  const owner = packageDirectory.slice(0, at);
  // npm keeps global packages in PREFIX/lib/node_modules, and would overwrite PREFIX/bin/node with
  // a link of its own.
  const where =
    owner.endsWith(sep + "lib") && !existsSync(join(owner, "package.json"))
      ? "--global --no-bin-links --prefix " + dirname(owner)
      : "--prefix " + owner;
  return "npm install " + where + " " + scriptlessPackage + "@" + oldestMajor;
}
