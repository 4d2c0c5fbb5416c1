/**
 * Docker or podman: whichever can run a container here.
 */
import { spawnSync } from "node:child_process";

const lookTimeoutMs = 30_000;
const maxOutputBytes = 64 * 1024 * 1024;
/**
 * The engines' own defaults can be above what this process may grant, and then no container starts.
 */
const ulimits = ["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:4096"];

/** No container can be made on this host. The message says why. */
export class Unavailable extends Error {}

/**
 * @typedef {object} Engine
 * @property {"docker" | "podman"} name
 * @property {readonly string[]} runFlags
 * @property {readonly string[]} buildFlags
 * @property {(args: readonly string[], timeoutMs: number) => Ended} run
 * @property {(args: readonly string[], timeoutMs: number) => string} mustRun returns its output
 */

/** @typedef {{ status: number | undefined, output: string }} Ended */

/**
 * The engine to use. Throws Unavailable.
 *
 * @returns {Engine}
 */
export function findEngine() {
  for (const name of /** @type {const} */ (["docker", "podman"])) {
    // A client whose daemon is away answers `--version`, and nothing else.
    if (run(name, ["info"], lookTimeoutMs).status === 0) return engine(name);
  }
  throw new Unavailable("neither docker nor podman answers on this host");
}

/**
 * @param {Engine["name"]} name
 * @returns {Engine}
 */
function engine(name) {
  return {
    name,
    runFlags: ulimits,
    // The build fetches packages with the host's own network and name service. podman's storage may
    // hold a whole copy of the file system for each step that it keeps.
    buildFlags: ["--network=host", ...(name === "podman" ? ["--layers=false"] : []), ...ulimits],
    run: (args, timeoutMs) => run(name, args, timeoutMs),
    mustRun: (args, timeoutMs) => {
      const { status, output } = run(name, args, timeoutMs);
      if (status !== 0) throw new Error(`${name} ${args[0]} failed:\n${output}`);
      return output;
    },
  };
}

/**
 * Runs a program to its end; `status` is undefined when it could not be started or took too long.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {number} timeoutMs
 * @returns {Ended}
 */
export function run(program, args, timeoutMs) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: "utf8",
    timeout: timeoutMs,
    maxBuffer: maxOutputBytes,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return {
    status: status ?? undefined,
    output: `${stdout ?? ""}${stderr ?? ""}${error === undefined ? "" : error.message}`,
  };
}
