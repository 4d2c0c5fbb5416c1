/**
 * Finds out which Debian packages are missing, and installs them where that is allowed.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { runInstaller } from "./installer.mjs";
import { SetupError, say } from "./report.mjs";
import { withServicesDown } from "./services.mjs";

const attempts = 3;
const pauseMs = 5_000;
/** Another apt-get on the machine may hold dpkg's lock for a whole installation. */
const lockTimeoutSeconds = 300;

const aptOptions = [
  "-qq",
  "-o",
  `DPkg::Lock::Timeout=${lockTimeoutSeconds}`,
  "-o",
  "Acquire::Retries=3",
  "-o",
  "Acquire::http::Timeout=60",
];

/**
 * Those of the packages whose file is not there. Asks the file system, so it holds on any
 * distribution.
 */
export function missingDebianPackages(packages) {
  return packages.filter(({ file }) => !existsSync(file));
}

/**
 * Installs the packages as root or through sudo without a password. Throws SetupError where it
 * cannot.
 */
export async function installDebianPackages(packages) {
  const names = packages.map(({ name }) => name);
  const prefix = rootPrefix();
  if (prefix === undefined || !isRunnable("apt-get", ["--version"])) {
    throw new SetupError(howToInstall(packages));
  }
  say(`installing the Debian packages ${names.join(", ")} (apt-get)`);
  const units = packages.flatMap(({ services = [] }) => services);
  const install = () => installByApt(prefix, packages);
  if (units.length > 0) await withServicesDown(prefix, units, install);
  else await install();
}

async function installByApt(prefix, packages) {
  const names = packages.map(({ name }) => name);
  let output = "";
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const install = await aptGet(prefix, ["install", "--yes", "--no-install-recommends", ...names]);
    if (install.ok && missingDebianPackages(packages).length === 0) return;
    output = install.output;
    if (attempt > 1) await delay(pauseMs);
    // The lists of a fresh machine are empty, and old lists name files that are gone.
    await aptGet(prefix, ["update"]);
  }
  throw new SetupError(`apt-get failed ${attempts} times:\n${output}\n${howToInstall(packages)}`);
}

/** What to put before a command so that it runs as root; undefined when this user may not. */
function rootPrefix() {
  if (process.getuid() === 0) return [];
  return isRunnable("sudo", ["-n", "true"]) ? ["sudo", "-n"] : undefined;
}

async function aptGet(prefix, args) {
  // env(1), because sudo drops the variables of its caller.
  const environment = ["env", "DEBIAN_FRONTEND=noninteractive"];
  const command = [...prefix, ...environment, "apt-get", ...aptOptions, ...args];
  const { status, output } = await runInstaller(command, { captures: true });
  return { ok: status === 0, output };
}

function isRunnable(command, args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

function howToInstall(packages) {
  const names = packages.map(({ name }) => name);
  const files = packages.map(({ file }) => file);
  const units = packages.flatMap(({ services = [] }) => services);
  return [
    `missing: ${names.join(", ")} (looked for ${files.join(", ")}). Install as root, then run this again:`,
    `  apt-get update && apt-get install --yes --no-install-recommends ${names.join(" ")}`,
    ...(units.length > 0
      ? [`and stop what Debian starts then: systemctl disable --now ${units.join(" ")}`]
      : []),
  ].join("\n");
}
