/**
 * Processes whose program is a text on their command line, with options that no thread can have.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A module's text, run by `--eval`; what it prints. Its `child` ends by itself, or is killed. */
export function evaluated(program: string): ReturnType<typeof run> {
  return run(process.execPath, ["--input-type=module", "--eval", program]);
}
