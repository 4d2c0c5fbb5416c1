/**
 * Who can change a file of the host, or what leads to it.
 */
import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type HostUser, firstChangeableBy } from "../../../worker/sandbox/path-permissions.ts";

const own = process.getuid?.() ?? 0;
const group = process.getgid?.() ?? 0;
const stranger: HostUser = { uid: 60_001, groups: [60_001] };

describe("a file is changed", () => {
  let base: string;
  let directory: string;
  let file: string;

  beforeEach(async () => {
    base = await mkdtemp("/var/tmp/str-reach-");
    await chmod(base, 0o755);
    directory = join(base, "bin");
    file = join(directory, "program");
    await mkdir(directory, { mode: 0o755 });
    await writeFile(file, "", { mode: 0o755 });
  });
  afterEach(() => rm(base, { recursive: true, force: true }));

  test("by its owner, whatever its mode is", async () => {
    await chmod(file, 0o444);
    expect(await firstChangeableBy(file, { uid: own, groups: [] })).toBe(file);
    // /var/tmp above it is for everybody, but nobody can take away there what is another's.
    expect(await firstChangeableBy(file, stranger)).toBeUndefined();
  });

  test("by those whom its mode allows to write", async () => {
    await chmod(file, 0o757);
    expect(await firstChangeableBy(file, stranger)).toBe(file);
    await chmod(file, 0o775);
    expect(await firstChangeableBy(file, stranger)).toBeUndefined();
    expect(await firstChangeableBy(file, { ...stranger, groups: [group] })).toBe(file);
  });

  test("by those who can put another in its place", async () => {
    await chmod(directory, 0o777);
    expect(await firstChangeableBy(file, stranger)).toBe(directory);
    await chmod(directory, 0o1777);
    expect(await firstChangeableBy(file, stranger)).toBeUndefined();
    await chmod(directory, 0o755);
    await chmod(base, 0o777);
    expect(await firstChangeableBy(file, stranger)).toBe(base);
  });

  test("through a link by those who can change what it leads to", async () => {
    const link = join(base, "link");
    await symlink(file, link);
    await chmod(directory, 0o777);
    expect(await firstChangeableBy(link, stranger)).toBe(directory);
  });

  test("by the owner of a directory above it", async ({ skip }) => {
    skip(own !== 0, "needs root: it gives a directory to another user");
    await chown(directory, stranger.uid, stranger.uid);
    expect(await firstChangeableBy(file, stranger)).toBe(directory);
  });
});
