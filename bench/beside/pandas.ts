/**
 * A tool that imports pandas, which comes from PyPI.
 */
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { execFile } from "node:child_process";
import { toolsDir } from "../tools.ts";

const run = promisify(execFile);

/** Milliseconds for some 100 MB. */
const installTimeoutMs = 180_000;
const requirement = "pandas==2.2.3";
const module = "bench_pandas";
/** With OpenBLAS's threads a template cannot be forked: docs/warm-starts.md. */
const source = `import json
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import pandas


def nothing() -> dict:
    return json.loads("{}")
`;

/** The tool, beside copies of the others. */
export interface PandasTool {
  readonly pythonDir: string;
  readonly module: string;
}

/** Installs it below `base`. Undefined, and a line on stderr, where PyPI is not reached. */
export async function installPandas(base: string): Promise<PandasTool | undefined> {
  const pythonDir = join(base, "python");
  const venv = join(base, "venv");
  await mkdir(pythonDir);
  await cp(join(toolsDir, "python"), pythonDir, { recursive: true });
  await writeFile(join(pythonDir, `${module}.py`), source);
  const options = { timeout: installTimeoutMs };
  try {
    await run("python3", ["-m", "venv", venv], options);
    const quiet = ["--quiet", "--disable-pip-version-check", "--no-cache-dir"];
    const install = ["install", ...quiet, "--target", pythonDir, requirement];
    await run(join(venv, "bin/pip"), install, options);
    return { pythonDir, module };
  } catch (error) {
    console.error(`without pandas: ${String(error)}`);
    return undefined;
  }
}
