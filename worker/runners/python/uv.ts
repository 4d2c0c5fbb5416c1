/**
 * Python interpreters that uv manages.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { SandboxError } from "../../sandbox/sandbox.ts";

const run = promisify(execFile);

/** What SANDBOX_PYTHONS has in place of a path. */
export const byUv = "uv";

/** Milliseconds that uv may take. */
const timeoutMs = 30_000;
/** What uv needs to find what it has installed. */
const variables = ["PATH", "HOME", "XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR"];

/**
 * The program of a version that uv has installed; `uvBin` is uv's own. Nothing is downloaded: the
 * worker asks an
 * interpreter about itself outside of any sandbox. Throws SandboxError.
 */
export async function findByUv(
  version: string,
  environment: Readonly<Record<string, string | undefined>>,
  uvBin: string = byUv,
): Promise<string> {
  const env = Object.fromEntries(variables.map((name) => [name, environment[name]]));
  const options = ["--no-project", "--no-config", "--managed-python", "--no-python-downloads"];
  try {
    const argv = ["python", "find", ...options, "--", version];
    const { stdout } = await run(uvBin, argv, { env, cwd: "/", timeout: timeoutMs });
    return stdout.trim();
  } catch (error) {
    throw new SandboxError(`uv has no Python ${version}; uv python install ${version} gets it`, {
      cause: error,
    });
  }
}
