/**
 * The original itself, from PyPI, as a virtual environment that tools can name.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { installedOnce, installedOrSkipped } from "../installed-once.ts";
import { pypiPackages, python } from "../pypi-packages.ts";

const run = promisify(execFile);

/** The original, with some 200 packages: pip takes over ten minutes to choose their versions. */
export const meshPackage = "solace-agent-mesh==1.28.8";
/** Milliseconds to install 1.7 GB and to compile the half of it that is imported. */
export const installMs = 900_000;

/** With them an import asks no server on the network. */
export const meshVariables = { LITELLM_LOCAL_MODEL_COST_MAP: "True" };

/**
 * Imports what the tests do, so that sandboxes find it compiled: whatever the environment says of
 * byte code.
 */
const install = `set -e
unset PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX
"$1" venv --quiet --no-cache --allow-existing --python "$2" "$4"
"$1" pip install --quiet --no-cache --no-build --python "$4/bin/python" "$3"
"$4/bin/python" -W ignore -c 'import solace_agent_mesh.agent.tools.executors.executor_tool
import solace_agent_mesh.agent.adk.models.lite_llm' 2> "$4/import.log"`;

/** Its Python program. Skips the test where PyPI is not reached. */
export async function meshPython(context: TestContext): Promise<string> {
  const uv = join(await pypiPackages(context, ["uv"]), "bin", "uv");
  const { stdout: version } = await run(python, ["--version"]);
  const installing = installedOnce({
    title: meshPackage,
    key: [version, meshPackage, install],
    timeoutMs: installMs,
    variables: () => meshVariables,
    command: (directory) => ["sh", "-c", install, "sh", uv, python, meshPackage, directory],
  });
  return join(await installedOrSkipped(context, installing), "bin/python");
}
