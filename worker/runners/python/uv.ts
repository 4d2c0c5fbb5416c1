/**
 * Python interpreters that uv manages.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { SandboxError } from "../../sandbox/sandbox.ts";

const run = promisify(execFile);

/** What SANDBOX_PYTHONS has in place of a path. */
export const byUv = "uv";

/** Milliseconds that uv may take to find a Python, and to download one. */
const timeoutMs = { find: 30_000, install: 300_000 };
/** What uv needs to find what it has installed. */
const places = ["PATH", "HOME", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR"];
/** What it needs to download. */
const network = [
  ...["UV_PYTHON_INSTALL_MIRROR", "UV_PYTHON_DOWNLOADS_JSON_URL", "UV_HTTP_TIMEOUT"],
  ...["SSL_CERT_FILE", "UV_NATIVE_TLS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"],
];

/** What uv is run with. */
export interface UvOptions {
  /** The worker's; uv sees some of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** uv's own program; it is looked for in the search path otherwise. */
  readonly uvBin?: string | undefined;
  /** Whether it downloads what it lacks. */
  readonly downloads: boolean;
}

/**
 * The program of a version that uv has installed. It downloads none unless the operator wants it:
 * the worker asks an interpreter about itself outside of any sandbox. Throws SandboxError.
 */
export async function findByUv(version: string, options: UvOptions): Promise<string> {
  try {
    return await find(version, options);
  } catch (error) {
    if (isAbsent(error)) throw new SandboxError("uv is not on the worker's PATH", { cause: error });
    if (!options.downloads)
      throw new SandboxError(`uv has no Python ${version}; uv python install ${version} gets it`, {
        cause: error,
      });
  }
  try {
    await runUv(["install", "--no-config", "--", version], options, timeoutMs.install);
    return await find(version, options);
  } catch (error) {
    throw new SandboxError(`uv cannot download Python ${version}`, { cause: error });
  }
}

function find(version: string, options: UvOptions): Promise<string> {
  const settings = ["--no-project", "--no-config", "--managed-python", "--no-python-downloads"];
  return runUv(["find", ...settings, "--", version], options, timeoutMs.find);
}

/** What `uv python` prints. */
async function runUv(
  argv: readonly string[],
  { environment, uvBin = byUv }: UvOptions,
  timeout: number,
): Promise<string> {
  const names = [...places, ...network];
  // No link in a directory of the user's programs.
  const env = { ...pick(environment, names), UV_PYTHON_INSTALL_BIN: "0" };
  const { stdout } = await run(uvBin, ["python", ...argv], { env, cwd: "/", timeout });
  return stdout.trim();
}

/** Whether there is no such program as uv; /, where it starts, is always there. */
function isAbsent(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function pick(
  environment: UvOptions["environment"],
  names: readonly string[],
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(names.map((name) => [name, environment[name]]));
}
