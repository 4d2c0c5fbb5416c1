/**
 * The image to build on: the published one, or one made from Debian's packages and this checkout's
 * Node.
 */
import { cpSync, existsSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { Unavailable, run } from "./engine.mjs";

const published = "docker.io/library/node:24-bookworm-slim";
/** Of this process: another one may remove its own meanwhile. */
const made = `localhost/str-base:${process.pid}`;
const pullTimeoutMs = 5 * 60_000;
const debootstrapTimeoutMs = 10 * 60_000;
const importTimeoutMs = 5 * 60_000;
const mirror = "http://deb.debian.org/debian";
const certificates = "/etc/ssl/certs/ca-certificates.crt";

/**
 * An image with Node 24, npm and apt-get. Throws Unavailable where there is none and none can be
 * made.
 *
 * @param {import("./engine.mjs").Engine} engine
 * @param {string} root
 * @param {string} scratch a directory of the caller's
 * @returns {string}
 */
export function findBase(engine, root, scratch) {
  if (engine.run(["pull", published], pullTimeoutMs).status === 0) return published;
  const missing = whatIsMissing(root);
  if (missing !== undefined) {
    throw new Unavailable(`${published} cannot be pulled, and to make a base ${missing}`);
  }
  return makeBase(engine, root, scratch);
}

/**
 * Removes a base that was made, which must have no image built on it any more.
 *
 * @param {import("./engine.mjs").Engine} engine
 */
export function removeMadeBase(engine) {
  engine.run(["rmi", "--force", made], importTimeoutMs);
}

/** @param {string} root */
function whatIsMissing(root) {
  if (process.getuid?.() !== 0) return "root is needed";
  if (run("debootstrap", ["--version"], pullTimeoutMs).status !== 0) return "debootstrap is needed";
  if (!existsSync(nodeOf(root))) return "node_modules is needed (npm ci)";
  return undefined;
}

/**
 * The Node that set-up puts into a checkout.
 *
 * @param {string} root
 */
function nodeOf(root) {
  return join(root, "node_modules", "node", "bin", "node");
}

/**
 * Debian's smallest system with the Node of `node_modules`, npm, and the certificates that this
 * host trusts.
 *
 * @param {import("./engine.mjs").Engine} engine
 * @param {string} root
 * @param {string} scratch
 */
function makeBase(engine, root, scratch) {
  const npm = npmDirectory();
  const tree = join(scratch, "base");
  const bootstrapped = run(
    "debootstrap",
    ["--variant=minbase", "--include=ca-certificates", "bookworm", tree, mirror],
    debootstrapTimeoutMs,
  );
  if (bootstrapped.status !== 0)
    throw new Unavailable(`debootstrap failed:\n${bootstrapped.output}`);
  const local = join(tree, "usr", "local");
  const modules = join(local, "lib", "node_modules");
  mkdirSync(modules, { recursive: true });
  cpSync(nodeOf(root), join(local, "bin", "node"));
  cpSync(npm, join(modules, "npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin", "npm"));
  if (existsSync(certificates)) cpSync(certificates, join(tree, certificates));
  const archive = join(scratch, "base.tar");
  const packed = run(
    "tar",
    ["-C", tree, "--one-file-system", "-cf", archive, "."],
    importTimeoutMs,
  );
  if (packed.status !== 0) throw new Error(`tar failed:\n${packed.output}`);
  const environment = `ENV NODE_EXTRA_CA_CERTS=${certificates}`;
  engine.mustRun(["import", "--change", environment, archive, made], importTimeoutMs);
  return made;
}

/** The directory of the npm on the path: its command is a link to `bin/npm-cli.js` in there. */
function npmDirectory() {
  const found = (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((directory) => join(directory, "npm"))
    .find((command) => existsSync(command));
  const directory = found === undefined ? "" : dirname(dirname(realpathSync(found)));
  if (!existsSync(join(directory, "bin", "npm-cli.js"))) {
    throw new Unavailable("npm's own files were not found, which a base needs");
  }
  return directory;
}
