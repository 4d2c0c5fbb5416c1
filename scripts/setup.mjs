/**
 * Sets up what a fresh Debian machine lacks, so that `npm run demo` and `npm test` are complete commands.
 *
 *     node scripts/setup.mjs packages | demo | test
 *
 * Runs under whatever Node (>= 20) is there, before anything is installed: it imports Node's own modules only.
 * It says nothing and takes a few tens of milliseconds when nothing is missing. Exit code 69 (EX_UNAVAILABLE of
 * sysexits(3)) means that something is missing which it may not or could not install; the message says what.
 */
import { spawnSync } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { installDebianPackages, missingDebianPackages } from "./setup/debian-packages.mjs";
import { installNpmPackages, npmPackagesAreCurrent } from "./setup/npm-packages.mjs";
import { checkSandbox } from "./setup/sandbox.mjs";
import { SetupError, say } from "./setup/report.mjs";

/** A Debian package and a file that is there when the package is installed in full. */
const bubblewrap = { name: "bubblewrap", file: "/usr/bin/bwrap" };
/** pydoc3 comes with python3 and not with python3-minimal, whose standard library is too small for tools. */
const python = { name: "python3", file: "/usr/bin/pydoc3" };
const prlimit = { name: "util-linux", file: "/usr/bin/prlimit" };
const certificates = { name: "ca-certificates", file: "/etc/ssl/certs/ca-certificates.crt" };
const openssl = { name: "openssl", file: "/usr/bin/openssl" };
/** Tests start their own; where it cannot be installed they say that they are skipped. */
const rabbitmq = {
  name: "rabbitmq-server",
  file: "/usr/lib/rabbitmq/bin/rabbitmq-server",
  services: ["rabbitmq-server.service", "epmd.service", "epmd.socket"],
};

/** What each command needs of Debian. A new need is one entry here. */
const needs = {
  packages: [],
  demo: [bubblewrap, python, prlimit, certificates],
  test: [bubblewrap, python, prlimit, certificates, openssl],
};

/** What each command makes use of, and can do without. */
const wishes = { packages: [], demo: [], test: [rabbitmq] };

/** Long enough for the slowest first setup of another process. */
const lockTimeoutSeconds = 900;
const oldestNode = 20;
const exitUnavailable = 69;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [mode, locked] = process.argv.slice(2);

try {
  process.exitCode = setUp();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = exitUnavailable;
}

function setUp() {
  if (!Object.hasOwn(needs, mode)) {
    throw new SetupError(`unknown set "${mode}"; known: ${Object.keys(needs).join(", ")}`);
  }
  if (Number.parseInt(process.versions.node, 10) < oldestNode) {
    throw new SetupError(`Node ${oldestNode} or newer is needed; this is ${process.version}`);
  }
  const npmIsCurrent = npmPackagesAreCurrent(root);
  const missing = missingDebianPackages(needs[mode]);
  const wished = missingDebianPackages(wishes[mode]);
  const isComplete = npmIsCurrent && missing.length === 0 && wished.length === 0;
  if (!isComplete && locked === undefined) return runLocked();
  if (!npmIsCurrent) installNpmPackages(root);
  if (missing.length > 0) installDebianPackages(missing);
  if (wished.length > 0) installIfPossible(wished);
  if (needs[mode].includes(bubblewrap)) checkSandbox(bubblewrap.file);
  return 0;
}

function installIfPossible(packages) {
  try {
    installDebianPackages(packages);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(`going on without ${packages.map(({ name }) => name).join(", ")}: ${error.message}`);
  }
}

/**
 * Does the same again while holding a lock on the checkout's directory, so that two first runs at once do not write
 * into one node_modules. The kernel drops the lock with its holder; nothing stale can stay behind.
 */
function runLocked() {
  const command = [process.execPath, fileURLToPath(import.meta.url), mode, "locked"];
  const flock = spawnSync(
    "flock",
    ["--close", "--timeout", String(lockTimeoutSeconds), root, ...command],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  if (flock.error) {
    throw new SetupError(`cannot run flock (Debian package util-linux): ${flock.error.message}`);
  }
  return flock.status ?? exitUnavailable;
}
