/**
 * The disk that the worker's copies of toolsets take together.
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CopyError, toolsetLimits } from "../../../../worker/manifest/toolsets/budget.ts";
import { Snapshots } from "../../../../worker/manifest/toolsets/snapshots.ts";
import { newId } from "../../../../worker/support/ids.ts";

const { signal } = new AbortController();

test("copies that are kept or still in use leave the room for others", async () => {
  const base = await mkdtemp(join(tmpdir(), "str-snapshots-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const path = join(base, "kit");
  await mkdir(path);
  await writeFile(join(path, "tool.py"), "1234567890");
  const copies = join(base, "copies");
  const snapshots = new Snapshots(copies, newId, (error) => {
    throw error as Error;
  });
  const make = () => snapshots.make({ path, kind: "directory" }, signal);

  const other = { directory: join(base, "other"), revision: "1" };
  const isRefused = async (): Promise<void> => {
    const before = await readdir(copies);
    const refusal = await make().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(CopyError);
    expect(refusal).toHaveProperty(
      "message",
      "does not fit: copies of all toolsets may have 4096 MiB",
    );
    expect(await readdir(copies)).toEqual(before);
  };
  // Nine bytes are left, and the toolset has ten.
  await snapshots.keep("other", { ...other, bytes: toolsetLimits.togetherBytes - 9 });
  await mkdir(copies);
  await isRefused();

  // A former state that a call still uses counts; once the call has ended it does not.
  const lease = snapshots.lease({ name: "other", revision: "1" });
  await snapshots.retain([]);
  await isRefused();
  lease?.[Symbol.dispose]();
  const made = await make();
  expect(made.bytes).toBe(10);
  await snapshots.keep("kit", made);

  // To the byte, with those of the copy that is kept.
  const revision = "2";
  await snapshots.keep("other", { ...other, revision, bytes: toolsetLimits.togetherBytes - 20 });
  await snapshots.drop(await make());
  await writeFile(join(path, "more"), "1");
  await isRefused();
});
