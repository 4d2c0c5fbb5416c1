/**
 * Finds the programs that a worker needs, or their packages.
 */
import { access, constants } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import type { Environment } from "../worker/config/config.ts";
import { CommandError } from "./context.ts";

/** Paths of the programs that a worker has a variable for. */
export interface Programs {
  readonly bwrapBin: string;
  readonly pythonBin: string;
}

/** A program, and the packages it comes in. */
interface Need {
  readonly program: string;
  /** Tried before `PATH`. */
  readonly usualPath: string;
  /** Variable that names another one, if the worker reads one. */
  readonly variable?: string;
  readonly packages: Readonly<Record<"apt" | "dnf" | "apk", string>>;
}

const bwrap: Need = {
  program: "bwrap",
  usualPath: "/usr/bin/bwrap",
  variable: "SANDBOX_BWRAP_BIN",
  packages: { apt: "bubblewrap", dnf: "bubblewrap", apk: "bubblewrap" },
};

const python: Need = {
  program: "python3",
  usualPath: "/usr/bin/python3",
  variable: "SANDBOX_PYTHON_BIN",
  packages: { apt: "python3", dnf: "python3", apk: "python3" },
};

const prlimit: Need = {
  program: "prlimit",
  usualPath: "/usr/bin/prlimit",
  packages: { apt: "util-linux", dnf: "util-linux", apk: "util-linux-misc" },
};

/** Finds the programs. Rejects with CommandError, which names all missing ones. */
export async function findPrograms(
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): Promise<Programs> {
  if (platform !== "linux") {
    throw new CommandError(`a worker needs Linux with bubblewrap; this is ${platform}`);
  }
  const needs = [bwrap, python, prlimit];
  const found = await Promise.all(needs.map((need) => find(need, environment)));
  const missing = needs.filter((_, index) => found[index] === undefined);
  const [bwrapBin, pythonBin] = found;
  if (missing.length > 0 || bwrapBin === undefined || pythonBin === undefined) {
    throw new CommandError(whatToInstall(missing, environment));
  }
  return { bwrapBin, pythonBin };
}

/** Finds the Python interpreter alone. Throws CommandError that says how to install it. */
export async function findPython(environment: Environment): Promise<string> {
  const found = await find(python, environment);
  if (found === undefined) throw new CommandError(whatToInstall([python], environment));
  return found;
}

async function find(need: Need, environment: Environment): Promise<string | undefined> {
  const chosen = chosenPath(need, environment);
  const onPath = (environment["PATH"] ?? "")
    .split(delimiter)
    .filter((directory) => isAbsolute(directory))
    .map((directory) => join(directory, need.program));
  for (const path of chosen ? [chosen] : [need.usualPath, ...onPath]) {
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

function chosenPath({ variable }: Need, environment: Environment): string | undefined {
  return variable === undefined ? undefined : environment[variable] || undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function whatToInstall(missing: readonly Need[], environment: Environment): string {
  const names = missing.map((need) => {
    const chosen = chosenPath(need, environment);
    return chosen === undefined ? need.program : `${need.program} (${need.variable} is ${chosen})`;
  });
  const packages = (manager: keyof Need["packages"]): string =>
    [...new Set(missing.map((need) => need.packages[manager]))].join(" ");
  return [
    `not installed: ${names.join(", ")}. Install with`,
    `  apt-get install ${packages("apt")}   (Debian, Ubuntu)`,
    `  dnf install ${packages("dnf")}   (Fedora, RHEL)`,
    `  apk add ${packages("apk")}   (Alpine)`,
  ].join("\n");
}
