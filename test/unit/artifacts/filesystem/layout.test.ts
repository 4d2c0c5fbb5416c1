import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import { csv, never, readText, scope, sourceOf, temporaryDirectory } from "../fixtures.ts";

/** Every regular file below a directory, by its path from there. */
async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .toSorted();
}

describe("a version is kept where the original keeps it", () => {
  test.for([
    ["ed_test", "report.csv", "ed_test/user-42/web-1/report.csv"],
    ["ed_test/", "report.csv", "user-42/web-1/report.csv"],
    ["myorg/dev", "report.csv", "dev/user-42/web-1/report.csv"],
    ["ed_test", "年.csv", "ed_test/user-42/web-1/年.csv"],
    ["ed_test", "a\u202fb.csv", "ed_test/user-42/web-1/a b.csv"],
    ["ed_test", "user:prefs.json", "ed_test/user-42/user/prefs.json"],
    ["ed_test", "0.meta", "ed_test/user-42/web-1/0.meta"],
  ] as const)("in scope %j for the filename %j", async ([root, filename, directory]) => {
    const base = await temporaryDirectory();
    await using store = createFilesystemStore({ basePath: base });

    await store.save({ ...scope, root }, filename, sourceOf("first"), csv, never);
    await store.save({ ...scope, root }, filename, sourceOf("second"), csv, never);

    expect(await filesBelow(base)).toEqual([
      `${directory}/0`,
      `${directory}/0.meta`,
      `${directory}/1`,
      `${directory}/1.meta`,
    ]);
    expect(await readFile(join(base, directory, "0"), "utf8")).toBe("first");
    expect(await readFile(join(base, directory, "1"), "utf8")).toBe("second");
    expect(await readFile(join(base, directory, "1.meta"), "utf8")).toBe(
      '{"mime_type": "text/csv"}',
    );
  });

  test("in files that everybody may read and directories that others cannot change", async () => {
    const base = await temporaryDirectory();
    await using store = createFilesystemStore({ basePath: base });
    await store.save(scope, "report.csv", sourceOf("a"), csv, never);
    const directory = join(base, "ed_test/user-42/web-1/report.csv");

    const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

    expect(await mode(join(directory, "0"))).toBe("644");
    expect(await mode(join(directory, "0.meta"))).toBe("644");
    expect(await mode(directory)).toBe((0o775 & ~process.umask()).toString(8));
    expect((await stat(join(directory, "0"))).nlink).toBe(1);
  });
});

describe("a version that the original wrote is read", () => {
  test.for([
    ["ed_test", "report.csv", "ed_test/user-42/web-1/report.csv"],
    ["ed_test/", "report.csv", "user-42/web-1/report.csv"],
    ["myorg/dev", "report.csv", "dev/user-42/web-1/report.csv"],
    ["ed_test", "user:prefs.json", "ed_test/user-42/user/prefs.json"],
  ] as const)("in scope %j for the filename %j", async ([root, filename, directory]) => {
    const base = await temporaryDirectory();
    await using store = createFilesystemStore({ basePath: base });
    await mkdir(join(base, directory), { recursive: true });
    for (const version of [0, 1, 2]) {
      await writeFile(join(base, directory, String(version)), `content ${version}`);
      await writeFile(join(base, directory, `${version}.meta`), '{"mime_type": "text/x-\\u5e74"}');
    }
    const from = { ...scope, root };

    expect(await store.versions(from, filename, never)).toEqual([0, 1, 2]);
    expect(await readText(store, filename, undefined, from)).toBe("content 2");
    expect(await readText(store, filename, 1, from)).toBe("content 1");
    const opened = await store.open(from, { filename, version: 0 }, never);
    opened.body.destroy();
    expect(opened.metadata).toEqual({ mimeType: "text/x-年" });
    expect(await store.save(from, filename, sourceOf("ours"), csv, never)).toMatchObject({
      version: 3,
    });
  });
});

test("only directories that hold a finished version are listed", async () => {
  const base = await temporaryDirectory();
  const session = join(base, "ed_test/user-42/web-1");
  await mkdir(join(session, "deleted.csv"), { recursive: true });
  await mkdir(join(session, "unfinished.csv"));
  await writeFile(join(session, "unfinished.csv/0"), "content without metadata");
  await writeFile(join(session, "file"), "no directory");
  await symlink("report.csv", join(session, "link.csv"));
  await using store = createFilesystemStore({ basePath: base });
  await store.save(scope, "report.csv", sourceOf("a"), csv, never);

  expect(await store.names(scope, never)).toEqual(["report.csv"]);
});

test("where the scope level vanishes, a user may be called as a scope is, and neither reads the other", async () => {
  const base = await temporaryDirectory();
  await using store = createFilesystemStore({ basePath: base });
  const inScope = { root: "acme", userId: "web-1", sessionId: "report.csv" };
  const vanished = { root: "ed_test/", userId: "acme", sessionId: "web-1" };
  await store.save(vanished, "report.csv", sourceOf("vanished"), csv, never);
  await store.save(inScope, "a.csv", sourceOf("in scope"), csv, never);

  expect(await store.versions(vanished, "report.csv", never)).toEqual([0]);
  expect(await readText(store, "report.csv", undefined, vanished)).toBe("vanished");
  expect(await readText(store, "a.csv", undefined, inScope)).toBe("in scope");
  await expect(
    store.open(inScope, { filename: "0", version: undefined }, never),
  ).rejects.toMatchObject({ reason: "not-found" });
  await expect(store.save(inScope, "0", sourceOf("x"), csv, never)).rejects.toMatchObject({
    reason: "unavailable",
    message: '"0" is not a directory in the artifact store.',
  });
});
