/**
 * Trees of many files, made faster than Node can make them.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

const program = `
import os, sys
os.chdir(sys.argv[1])
for index in range(int(sys.argv[2])):
    os.mknod(f"file-{index}", 0o644)`;

/** Makes so many empty files, `file-0` and so on, in a directory that is there. */
export async function makeFiles(directory: string, count: number): Promise<void> {
  await run("python3", ["-I", "-c", program, directory, String(count)]);
}
