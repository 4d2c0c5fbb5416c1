/**
 * Sets up what a fresh Debian machine lacks, so that `npm run demo` and `npm test` are complete
 * commands.
 *
 *     node scripts/setup.mjs packages | demo | test | wheel
 *
 * Runs under whatever Node (>= 20) is there, before anything is installed: it imports Node's own
 * modules only. It says nothing and takes a few tens of milliseconds when nothing is missing. Exit
 * code 69 (EX_UNAVAILABLE of sysexits(3)) means that something is missing which it may not or could
 * not install; the message says what.
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { installDebianPackages, missingDebianPackages } from "./setup/debian-packages.mjs";
import { Interrupted } from "./setup/installer.mjs";
import { lockCheckout } from "./setup/lock.mjs";
import { installNpmPackages, npmPackagesAreCurrent } from "./setup/npm-packages.mjs";
import { SetupError, say } from "./setup/report.mjs";
import { checkSandbox } from "./setup/sandbox.mjs";

/** A Debian package and a file that is there when the package is installed in full. */
const bubblewrap = { name: "bubblewrap", file: "/usr/bin/bwrap" };
/**
 * pydoc3 comes with python3 and not with python3-minimal, whose standard library is too small for
 * tools.
 */
const python = { name: "python3", file: "/usr/bin/pydoc3" };
const prlimit = { name: "util-linux", file: "/usr/bin/prlimit" };
const certificates = { name: "ca-certificates", file: "/etc/ssl/certs/ca-certificates.crt" };
const setuptools = {
  name: "python3-setuptools",
  file: "/usr/lib/python3/dist-packages/setuptools/__init__.py",
};
const wheel = { name: "python3-wheel", file: "/usr/lib/python3/dist-packages/wheel/__init__.py" };
const openssl = { name: "openssl", file: "/usr/bin/openssl" };
/** Tests start their own; where it cannot be installed they say that they are skipped. */
const rabbitmq = {
  name: "rabbitmq-server",
  file: "/usr/lib/rabbitmq/bin/rabbitmq-server",
  services: ["rabbitmq-server.service", "epmd.service", "epmd.socket"],
};

/** Tests install packages of their own with it; without it they are skipped, too. */
const pip = { name: "python3-pip", file: "/usr/lib/python3/dist-packages/pip/__init__.py" };

/** What each command needs of Debian. A new need is one entry here. */
const needs = {
  packages: [],
  demo: [bubblewrap, python, prlimit, certificates],
  test: [bubblewrap, python, prlimit, certificates, openssl],
  wheel: [python, setuptools, wheel],
};

/** What each command makes use of, and can do without. */
const wishes = { packages: [], demo: [], test: [rabbitmq, pip], wheel: [] };

const oldestNode = 20;
const exitUnavailable = 69;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [mode] = process.argv.slice(2);

try {
  await setUp();
} catch (error) {
  if (error instanceof Interrupted) {
    say("interrupted");
    // Ends as the signal ends a process, so that the shell does not go on to the next command.
    process.kill(process.pid, error.signal);
  } else if (error instanceof SetupError) {
    say(error.message);
    process.exitCode = exitUnavailable;
  } else throw error;
}

async function setUp() {
  if (!Object.hasOwn(needs, mode)) {
    throw new SetupError(`unknown set "${mode}"; known: ${Object.keys(needs).join(", ")}`);
  }
  if (Number.parseInt(process.versions.node, 10) < oldestNode) {
    throw new SetupError(`Node ${oldestNode} or newer is needed; this is ${process.version}`);
  }
  if (!isComplete()) await install(await lockCheckout(root));
  if (needs[mode].includes(bubblewrap)) checkSandbox(bubblewrap.file);
}

function isComplete() {
  const packages = [...needs[mode], ...wishes[mode]];
  return npmPackagesAreCurrent(root) && missingDebianPackages(packages).length === 0;
}

/** Installs what is missing now that nothing else installs here. */
async function install(lock) {
  if (!npmPackagesAreCurrent(root)) await installNpmPackages(root, lock);
  const missing = missingDebianPackages(needs[mode]);
  if (missing.length > 0) await installDebianPackages(missing);
  const wished = missingDebianPackages(wishes[mode]);
  if (wished.length > 0) await installIfPossible(wished);
}

async function installIfPossible(packages) {
  try {
    await installDebianPackages(packages);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(`going on without ${packages.map(({ name }) => name).join(", ")}: ${error.message}`);
  }
}
