/**
 * File systems in a file, for what this machine's own cannot do.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, onTestFinished } from "vitest";
import { isRoot } from "./is-root.ts";

const run = promisify(execFile);

/** Bytes of the file, which has holes: the least that both file systems take. */
const sizeBytes = 400 * 1024 ** 2;

/** File systems with reflinks. */
export type Reflinking = "btrfs" | "xfs";

/** The mount point of a new one, until the end of the test. Skips the test where none is made. */
export async function reflinkingFileSystem(
  kind: Reflinking,
  context: Pick<TestContext, "skip">,
): Promise<string> {
  if (!isRoot) context.skip("only root mounts file systems");
  const directory = await mkdtemp(join(tmpdir(), "str-loop-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const [image, mountPoint] = [join(directory, "image"), join(directory, "mount")];
  await using file = await open(image, "wx");
  await file.truncate(sizeBytes);
  await mkdir(mountPoint);
  try {
    await run(`mkfs.${kind}`, ["-q", image]);
    await run("mount", ["-o", "loop", image, mountPoint]);
  } catch (error) {
    context.skip(`this machine makes no ${kind}: ${(error as Error).message.split("\n")[0]}`);
  }
  onTestFinished(async () => void (await run("umount", [mountPoint])));
  return mountPoint;
}
