/**
 * Work directories without those who make them in numbers, for tests of what is done with one.
 */
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  OpenWorkDir,
  type WorkDir,
  openWorkDirHandles,
  workDirNames,
} from "../../../worker/sandbox/work/work-dir.ts";
import { FileCopier } from "../../../worker/support/files/copy-file.ts";

const run = promisify(execFile);

/** A new one, removed when it is disposed. The caller owns it. By default no input is mounted. */
export async function newWorkDir(base = tmpdir(), bindsShared = false): Promise<WorkDir> {
  const path = await mkdtemp(join(base, "str-work-"));
  const { input, output, status } = workDirNames;
  await Promise.all([input, output].map((name) => mkdir(join(path, name))));
  await run("mkfifo", [join(path, status)]);
  return new OpenWorkDir(await openWorkDirHandles(path), {
    path,
    ownerId: undefined,
    copier: new FileCopier(),
    bindsShared,
    // Before what it lies on may go.
    remove: () => rmSync(path, { recursive: true }),
  });
}
