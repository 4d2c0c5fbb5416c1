/**
 * What the Python runner needs of the host: facts of the interpreter, and the tool runner with its
 * bytecode.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { SandboxError } from "../../sandbox/sandbox.ts";
import { insidePaths } from "../inside-paths.ts";
import { packagesVariable } from "../tool-environment.ts";
import { missingProgram } from "../../support/install-hint.ts";

const run = promisify(execFile);

/** The first version that the tool runner runs on. */
const leastVersion = { major: 3, minor: 9 } as const;

/** Milliseconds the interpreter may take to answer a question about itself. */
const questionTimeoutMs = 30_000;

/** The packages of a Python tool's own. */
export const installedPackages = `${insidePaths.installation}/packages`;

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
  base: z.string(),
  identity: z.string(),
});

/**
 * Asks an interpreter what it consists of: everything it imports from must be visible inside. What
 * is added are the directories of `.pth` files, in which people work on packages; what is installed
 * only comes and goes as a whole. The base of a virtual environment is the interpreter that it was
 * made of.
 */
const aboutItself = `
import json, os, site, sys, sysconfig
paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
library = os.path.dirname(os.__file__)
installed = [library, os.path.join(library, "lib-dynload"), *site.getsitepackages()]
base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
implementation = sys.implementation
version = "%d.%d.%d" % implementation.version[:3]
abi = sysconfig.get_config_var("SOABI")
print(json.dumps({
    "version": sys.version.split()[0],
    "executable": sys.executable,
    "directories": [p for p in paths if os.path.isdir(p)],
    "installed": installed,
    "added": [p for p in sys.path if os.path.isdir(p) and p not in installed],
    "base": base if os.path.isfile(base) else sys.executable,
    "identity": f"{implementation.name}-{version}-{abi}-{sysconfig.get_platform()}",
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

/**
 * Makes a virtual environment (PEP 405) without packages of its own, which reads those of a tool
 * from where they are mounted, with their `.pth` files. So nothing that is installed for the
 * interpreter is seen. The variable is for backends that mount nothing.
 */
const makeEnvironment = `
import os, sys, sysconfig
directory, base, variable, packages = sys.argv[1:]
os.umask(0o022)
library = sysconfig.get_path("purelib", "posix_prefix", {"base": directory})
os.makedirs(library)
os.makedirs(os.path.join(directory, "bin"))
for name in ["python", "python3", "python%d.%d" % sys.version_info[:2]]:
    os.symlink(base, os.path.join(directory, "bin", name))
with open(os.path.join(directory, "pyvenv.cfg"), "w") as file:
    file.write(f"home = {os.path.dirname(base)}\\ninclude-system-site-packages = false\\n")
with open(os.path.join(library, "packages-of-the-tool.pth"), "w") as file:
    file.write(f"import os, site; site.addsitedir(os.environ.get({variable!r}, {packages!r}))\\n")`;

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
  requireVersion(asked.value, options.pythonBin);
  if (compiled.status === "rejected") throw compiled.reason;
  return { facts: asked.value, compiledDir: compiled.value };
}

function requireVersion({ version }: PreparedPython["facts"], pythonBin: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major === leastVersion.major && minor >= leastVersion.minor) return;
  const { major: least, minor: leastMinor } = leastVersion;
  throw new SandboxError(
    `${pythonBin} is Python ${version}; tools need Python ${least}.${leastMinor} or later`,
    { setting: "pythonBin" },
  );
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

/** Makes the virtual environment of tools with packages of their own. Throws SandboxError. */
export async function makePythonEnvironment(
  { base }: PreparedPython["facts"],
  directory: string,
): Promise<void> {
  const argv = ["-I", "-c", makeEnvironment, directory, base, packagesVariable, installedPackages];
  try {
    await run(base, argv, { env: {}, timeout: questionTimeoutMs });
  } catch (error) {
    throw new SandboxError(`cannot make a virtual environment of ${base}`, { cause: error });
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
