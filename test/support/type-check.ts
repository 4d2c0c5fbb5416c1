/**
 * The type check of an author of Node tools: this project's tsc, with the packages that the guide
 * has them install.
 */
import { execFile } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";

const project = join(import.meta.dirname, "../..");
const modules = join(project, "node_modules");

/** Links, as npm does for directories, what the guide installs. */
export async function installTypes(directory: string): Promise<void> {
  const installed = join(directory, "node_modules");
  await mkdir(join(installed, "@types"), { recursive: true });
  await symlink(join(modules, "@types/node"), join(installed, "@types/node"));
  await symlink(join(project, "tool-runner/node"), join(installed, "secure-tool-runtime"));
}

/**
 * Checks the files beside a `tsconfig.json` by what it says. Returns what tsc complains about:
 * nothing when all is well.
 */
export function typeCheck(directory: string): Promise<string> {
  const argv = [join(modules, "typescript/bin/tsc"), "--project", directory, "--pretty", "false"];
  return new Promise((resolve, reject) => {
    execFile(join(modules, "node/bin/node"), argv, (error, stdout, stderr) => {
      if (error === null || stdout !== "") resolve(stdout);
      else reject(new Error(`tsc failed: ${stderr}`, { cause: error }));
    });
  });
}
