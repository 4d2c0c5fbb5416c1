import { renameSync, symlinkSync } from "node:fs";
import { chmod, chown, mkdir, rename, stat, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type Base,
  ensureDirectory,
  openBase,
} from "../../../../worker/artifacts/filesystem/directories.ts";
import { temporaryDirectory } from "../fixtures.ts";
import { isRoot } from "../../../support/is-root.ts";

/** Mode and group of a directory and of one in it. */
async function accessOf(directory: string): Promise<string[]> {
  const statuses = await Promise.all(
    [directory, join(directory, "inner")].map((path) => stat(path)),
  );
  return statuses.map(({ mode, gid }) => `${(mode & 0o7777).toString(8)} ${gid}`);
}

describe("a base that a group shares", () => {
  /**
   * The base, with the worker's directory `scope` in it, and a directory of the same user
   * elsewhere.
   */
  async function sharedPlace() {
    const path = await temporaryDirectory();
    if (isRoot) await chown(path, 0, 63_000);
    await chmod(path, 0o2770);
    const outside = await temporaryDirectory();
    await mkdir(join(outside, "inner"), { mode: 0o700 });
    const base = await openBase(path);
    const scope = join(path, "scope");
    await ensureDirectory(base, ["scope", "inner"]);
    return { base, scope, outside, before: await accessOf(outside) };
  }

  test.for(["scope", "scope/inner"])(
    "gives nothing of itself to what a link leads to, at %j",
    async (level) => {
      const { base, outside, before } = await sharedPlace();
      const link = join(base.path, level);
      await rename(link, `${link}.moved`);
      await symlink(join(outside, level.slice("scope".length)), link);

      await expect(ensureDirectory(base, ["scope", "inner"])).rejects.toMatchObject({
        name: "StoreError",
        reason: "unavailable",
        message: `"${basename(level)}" is not a directory in the artifact store.`,
      });
      expect(await accessOf(outside)).toEqual(before);
    },
  );

  test("nor when a directory becomes a link after it was looked at", async () => {
    const { base, scope, outside, before } = await sharedPlace();
    const moved = `${scope}.moved`;
    await chmod(scope, 0o700);
    let looks = 0;
    /** Is asked about the directory first, and then between the look at it and the change. */
    const exchanging: Base = {
      ...base,
      get isShared() {
        if (++looks === 2) {
          renameSync(scope, moved);
          symlinkSync(outside, scope);
        }
        return true;
      },
    };

    await ensureDirectory(exchanging, ["scope", "inner"]);

    expect(looks).toBeGreaterThan(1);
    expect(await accessOf(outside)).toEqual(before);
    const shared = `2770 ${base.status.gid}`;
    expect(await accessOf(moved)).toEqual([shared, shared]);
  });
});
