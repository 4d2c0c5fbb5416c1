/**
 * What the Python runner needs of the host: facts of the interpreter, and the tool runner with its
 * bytecode.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { SandboxError } from "../sandbox/sandbox.ts";
import { insidePaths } from "./inside-paths.ts";
import { missingProgram } from "../support/install-hint.ts";

const run = promisify(execFile);

/** Milliseconds the interpreter may take to answer a question about itself. */
const questionTimeoutMs = 30_000;

/** What it is made from. */
export interface PythonHostOptions {
  /** Interpreter on the host (`SANDBOX_PYTHON_BIN`). */
  readonly pythonBin: string;
  /** The project's `tool-runner/python`. */
  readonly runnerDir: string;
  /** Directory for this process alone, which sandboxes can reach; its owner removes it. */
  readonly scratchDir: string;
}

const interpreterFacts = z.object({
  version: z.string(),
  executable: z.string(),
  directories: z.array(z.string()),
  installed: z.array(z.string()),
  added: z.array(z.string()),
});

/**
 * Asks an interpreter what it consists of: everything it imports from must be visible inside. What
 * is added are the directories of `.pth` files, in which people work on packages; what is installed
 * only comes and goes as a whole.
 */
const aboutItself = `
import json, os, site, sys
paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
library = os.path.dirname(os.__file__)
installed = [library, os.path.join(library, "lib-dynload"), *site.getsitepackages()]
print(json.dumps({
    "version": sys.version.split()[0],
    "executable": sys.executable,
    "directories": [p for p in paths if os.path.isdir(p)],
    "installed": installed,
    "added": [p for p in sys.path if os.path.isdir(p) and p not in installed],
}))`;

/**
 * Copies a directory, readable for everybody, and compiles it as `compileall` does, which takes
 * longer to load than this to run. Tracebacks show where the modules are inside, not where they
 * were compiled.
 */
const copyCompiled = `
import os, py_compile, sys
source, directory, inside = sys.argv[1:]
os.umask(0o022)
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
def fail(error):
    raise error
for parent, folders, names in os.walk(source, onerror=fail):
    folders[:] = [name for name in folders if name != "__pycache__"]
    below = parent[len(source):]
    os.makedirs(directory + below)
    for name in names:
        path = os.path.join(directory + below, name)
        with open(os.path.join(parent, name), "rb") as original, open(path, "wb") as copy:
            copy.write(original.read())
        if name.endswith(".py"):
            shown = inside + path[len(directory):]
            py_compile.compile(path, dfile=shown, doraise=True, invalidation_mode=mode)`;

/** What the runner needs of the host. */
export interface PreparedPython {
  readonly facts: z.infer<typeof interpreterFacts>;
  readonly compiledDir: string;
}

/** Asks the interpreter about itself and compiles the tool runner. Throws SandboxError. */
export async function preparePython(options: PythonHostOptions): Promise<PreparedPython> {
  // Both to their ends, so that nothing writes any more when one of them fails.
  const [asked, compiled] = await Promise.allSettled([
    askInterpreter(options.pythonBin),
    compileRunner(options),
  ]);
  if (asked.status === "rejected") throw asked.reason;
  if (compiled.status === "rejected") throw compiled.reason;
  return { facts: asked.value, compiledDir: compiled.value };
}

/**
 * A copy of the tool runner with its bytecode beside it. Sandboxes see it read-only, so without
 * this every call would compile it anew: a quarter of what a call costs.
 */
async function compileRunner({
  pythonBin,
  runnerDir,
  scratchDir,
}: PythonHostOptions): Promise<string> {
  const directory = join(scratchDir, "python-runner");
  const argv = ["-I", "-c", copyCompiled, runnerDir, directory, insidePaths.runner];
  try {
    await run(pythonBin, argv, { env: {}, timeout: questionTimeoutMs });
    return directory;
  } catch (error) {
    throw new SandboxError("cannot compile the Python tool runner", { cause: error });
  }
}

async function askInterpreter(pythonBin: string): Promise<z.infer<typeof interpreterFacts>> {
  try {
    const { stdout } = await run(pythonBin, ["-I", "-c", aboutItself], {
      env: {},
      timeout: questionTimeoutMs,
    });
    return interpreterFacts.parse(JSON.parse(stdout));
  } catch (error) {
    throw new SandboxError(`cannot use ${pythonBin} as the Python interpreter`, {
      cause: (await missingProgram(pythonBin, "python")) ?? error,
      setting: "pythonBin",
    });
  }
}
