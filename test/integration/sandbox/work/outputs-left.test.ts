/**
 * Whether anything is in `output/`, by a look that opens nothing where nothing has changed.
 */
import { link, mkdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import {
  OpenWorkDir,
  type WorkDir,
  distinctTime,
  openWorkDirHandles,
} from "../../../../worker/sandbox/work/work-dir.ts";
import { FileCopier } from "../../../../worker/support/files/copy-file.ts";
import { newWorkDir } from "../../../support/sandboxes/work-dir.ts";

/** Milliseconds after which the time of a change is of the past beyond doubt. */
const pastMs = 300;

const ways: readonly [what: string, put: (path: string, outside: string) => Promise<unknown>][] = [
  ["a file", (path) => writeFile(path, "")],
  ["a directory", (path) => mkdir(path)],
  ["a symbolic link", (path) => symlink("/nowhere", path)],
  ["a hard link", (path, outside) => link(outside, path)],
  ["a file from elsewhere", (path, outside) => rename(outside, path)],
];

describe.each(ways)("%s", (_what, put) => {
  test("is seen in a directory that was just made", async () => {
    await using made = await newWorkDir();
    await expectSeen(made, put);
  });

  test("is seen in one that was made long before", async () => {
    await using made = await newWorkDir();
    await untilPast(join(made.path, "output"));
    await using opened = await openAgain(made.path);
    await expectSeen(opened, put);
  });
});

test.each([
  ["of the past", 1_700_000_000_123_456_789n, 1_700_000_000_400, 1_700_000_000_123_456_789n],
  ["of this moment", 1_700_000_000_123_456_789n, 1_700_000_000_373, undefined],
  ["of a clock ahead of this host's", 1_700_000_009_123_456_789n, 1_700_000_000_400, undefined],
  ["of whole seconds", 1_700_000_000_000_000_000n, 1_700_000_000_400, undefined],
])("a time %s counts only where it tells each later change", (_which, ctimeNs, nowMs, expected) => {
  expect(distinctTime(ctimeNs, nowMs)).toBe(expected);
});

async function expectSeen(workDir: WorkDir, put: (typeof ways)[number][1]): Promise<void> {
  const [inside, outside] = ["output/inside", "outside"].map((name) => join(workDir.path, name));
  if (inside === undefined || outside === undefined) throw new Error("there are two paths");
  await writeFile(outside, "");
  expect(workDir.hasOutputs()).toBe(false);
  await put(inside, outside);
  expect(workDir.hasOutputs()).toBe(true);
  await rm(inside, { recursive: true });
  expect(workDir.hasOutputs()).toBe(false);
}

async function untilPast(path: string): Promise<void> {
  const { ctimeMs } = await stat(path);
  await vi.waitUntil(() => Date.now() - ctimeMs > pastMs, { interval: 5 });
}

/** As a worker opens it. The one that made it removes it. */
async function openAgain(path: string): Promise<WorkDir> {
  const remove = (): void => undefined;
  const options = { path, ownerId: undefined, copier: new FileCopier(), bindsShared: false };
  return new OpenWorkDir(await openWorkDirHandles(path), { ...options, remove });
}
