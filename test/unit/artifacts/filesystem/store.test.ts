import { spawnSync } from "node:child_process";
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, test, onTestFinished } from "vitest";
import { leftoverAgeMs } from "../../../../worker/artifacts/filesystem/staging.ts";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import type { ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { csv, never, readText, scope, sourceOf, temporaryDirectory } from "../fixtures.ts";
import { isRoot } from "../../../support/is-root.ts";

const sessionLevels = "ed_test/user-42/web-1";

interface Place {
  readonly base: string;
  /** Where files are staged. */
  readonly session: string;
  /** The directory of `report.csv`. */
  readonly directory: string;
  readonly store: ArtifactStore;
}

async function newPlace(): Promise<Place> {
  const base = await temporaryDirectory();
  const session = join(base, sessionLevels);
  return {
    base,
    session,
    directory: join(session, "report.csv"),
    store: createFilesystemStore({ basePath: base }),
  };
}

async function writeVersion(directory: string, version: number, content: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, String(version)), content);
  await writeFile(join(directory, `${version}.meta`), '{"mime_type": "text/csv"}');
}

function save(store: ArtifactStore, content: string) {
  return store.save(scope, "report.csv", sourceOf(content), csv, never);
}

function open(store: ArtifactStore, version?: number) {
  return store.open(scope, { filename: "report.csv", version }, never);
}

const notFound = { name: "StoreError", reason: "not-found" };

describe("a version of which one file is missing", () => {
  test("does not exist for readers, and its number is not used again", async () => {
    const { store, directory } = await newPlace();
    await writeVersion(directory, 0, "zero");
    await writeFile(join(directory, "1"), "a saver died here");

    expect(await store.versions(scope, "report.csv", never)).toEqual([0]);
    expect(await readText(store, "report.csv")).toBe("zero");
    await expect(open(store, 1)).rejects.toMatchObject({
      ...notFound,
      message: 'Artifact "report.csv" version 1 of session web-1 was not found.',
    });
    expect(await save(store, "two")).toMatchObject({ version: 2 });
    expect(await readFile(join(directory, "1"), "utf8")).toBe("a saver died here");
  });

  test("does not exist for savers of its metadata's number either", async () => {
    const { store, directory } = await newPlace();
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "0.meta"), '{"mime_type": "text/x-peer"}');

    await expect(open(store, 0)).rejects.toMatchObject(notFound);
    expect(await save(store, "one")).toMatchObject({ version: 1 });
    expect(await readdir(directory)).not.toContain("0");
  });

  test("is a version of the peer's as soon as the peer has finished it", async () => {
    const { store, directory } = await newPlace();
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "0"), "peer");
    await writeFile(join(directory, "0.meta"), "");
    expect(await save(store, "ours")).toMatchObject({ version: 1 });
    await expect(open(store, 0)).rejects.toMatchObject(notFound);

    await writeFile(join(directory, "0.meta"), '{"mime_type": "text/x-peer"}');

    expect(await store.versions(scope, "report.csv", never)).toEqual([0, 1]);
    expect(await readText(store, "report.csv", 0)).toBe("peer");
    expect(await readText(store, "report.csv", 1)).toBe("ours");
  });

  test("is passed over when the latest is asked for", async () => {
    const { store, directory } = await newPlace();
    await writeVersion(directory, 0, "zero");
    await writeVersion(directory, 1, "one");
    await writeFile(join(directory, "1.meta"), "");

    const opened = await open(store);

    expect(opened.version).toBe(0);
    expect((await buffer(opened.body)).toString()).toBe("zero");
  });
});

describe("a version whose metadata is damaged", () => {
  test.for([
    ["is not JSON", "{mime"],
    ["is not UTF-8", Buffer.from([0x22, 0xff, 0x22])],
    ["is larger than any MIME type", JSON.stringify({ mime_type: "x".repeat(70_000) })],
  ] as const)("because it %s is reported", async ([, meta]) => {
    const { store, directory } = await newPlace();
    await writeVersion(directory, 0, "zero");
    await writeFile(join(directory, "0.meta"), meta);

    await expect(open(store)).rejects.toMatchObject({
      reason: "unavailable",
      message: 'Artifact "report.csv" version 0 of session web-1 is damaged.',
    });
  });
});

test("a MIME type that could not be read back is not saved", async () => {
  const { store, base } = await newPlace();
  const mimeType = "x".repeat(70_000);

  await expect(
    store.save(scope, "report.csv", sourceOf("a"), { mimeType }, never),
  ).rejects.toMatchObject({ reason: "unavailable" });
  expect(await readdir(base)).toEqual([]);
});

describe("numbers", () => {
  test("go on after the highest entry of any kind, and only plain ones are versions", async () => {
    const { store, directory } = await newPlace();
    await writeVersion(directory, 7, "seven");
    await writeVersion(directory, 9, "nine");
    for (const name of ["007", "007.meta", "12", "12.meta", "abc", "8.meta.bak"]) {
      await writeFile(join(directory, name), "{}");
    }
    await mkdir(join(directory, "11"));
    await writeFile(join(directory, "11.meta"), "{}");

    expect(await store.versions(scope, "report.csv", never)).toEqual([7, 9, 12]);
    expect(await save(store, "x")).toMatchObject({ version: 13 });
  });

  test("of a name end where a peer's integers end", async () => {
    const { store, directory } = await newPlace();
    await writeVersion(directory, 2 ** 31 - 2, "last but one");
    expect(await save(store, "last")).toMatchObject({ version: 2 ** 31 - 1 });

    await expect(save(store, "beyond")).rejects.toMatchObject({
      reason: "too-many-versions",
      message: 'Artifact "report.csv" of session web-1 has too many versions.',
    });
    expect(await readText(store, "report.csv")).toBe("last");
  });

  test("beyond every integer are ignored by readers", async () => {
    const { store, directory } = await newPlace();
    await writeVersion(directory, 0, "zero");
    await writeFile(join(directory, "9".repeat(30)), "");
    await writeFile(join(directory, `${"9".repeat(30)}.meta`), "{}");

    expect(await store.versions(scope, "report.csv", never)).toEqual([0]);
    await expect(save(store, "x")).rejects.toMatchObject({ reason: "too-many-versions" });
  });
});

describe("a link that somebody planted", () => {
  async function placeWithSecret() {
    const outside = await temporaryDirectory();
    await writeVersion(outside, 0, "a host secret");
    const place = await newPlace();
    await mkdir(place.session, { recursive: true });
    return { ...place, outside };
  }

  test("as the content of a version is not followed", { tags: "promise-C6" }, async () => {
    const { store, directory, outside } = await placeWithSecret();
    await writeVersion(directory, 0, "zero");
    await writeFile(join(directory, "1.meta"), '{"mime_type": "text/csv"}');
    await symlink(join(outside, "0"), join(directory, "1"));

    await expect(open(store, 1)).rejects.toMatchObject(notFound);
    expect(await store.versions(scope, "report.csv", never)).toEqual([0]);
    expect(await readText(store, "report.csv")).toBe("zero");
  });

  test("as the metadata of a version is not followed", async () => {
    const { store, directory, outside } = await placeWithSecret();
    await mkdir(directory);
    await writeFile(join(directory, "0"), "zero");
    await symlink(join(outside, "0.meta"), join(directory, "0.meta"));

    await expect(open(store, 0)).rejects.toMatchObject(notFound);
  });

  test.for(["", "ed_test", "ed_test/user-42", sessionLevels, `${sessionLevels}/report.csv`])(
    "at the level %j is followed only if it is the base itself",
    async (level) => {
      const { base, store } = await newPlace();
      const outside = await temporaryDirectory();
      const link = join(base, level);
      await mkdir(join(link, ".."), { recursive: true });
      if (level === "") await rm(base, { recursive: true });
      await symlink(outside, link);
      const below = join(outside, `${sessionLevels}/report.csv`.slice(level.length));
      await writeVersion(below, 0, "a host secret");
      const before = await readdir(outside, { recursive: true });

      if (level === "") {
        expect(await readText(store, "report.csv")).toBe("a host secret");
        expect(await save(store, "x")).toMatchObject({ version: 1 });
        return;
      }
      await expect(open(store)).rejects.toMatchObject(notFound);
      expect(await store.versions(scope, "report.csv", never)).toEqual([]);
      await expect(save(store, "x")).rejects.toMatchObject({ reason: "unavailable" });
      expect(await readdir(outside, { recursive: true })).toEqual(before);
    },
  );

  test(
    "by the name of the next version is not written through",
    { tags: "promise-C6" },
    async () => {
      const { store, directory, outside } = await placeWithSecret();
      await mkdir(directory);
      await symlink(join(outside, "new"), join(directory, "0"));
      await symlink(join(outside, "new.meta"), join(directory, "1.meta"));

      expect(await save(store, "x")).toMatchObject({ version: 2 });
      expect(await readdir(outside)).toEqual(["0", "0.meta"]);
    },
  );

  test("or a named pipe does not hold a reader up", async () => {
    const { store, directory } = await newPlace();
    await writeVersion(directory, 0, "zero");
    await writeVersion(directory, 1, "one");
    await rm(join(directory, "1"));
    spawnSync("mkfifo", [join(directory, "1")]);
    expect((await stat(join(directory, "1"))).isFIFO()).toBe(true);

    await expect(open(store, 1)).rejects.toMatchObject(notFound);
    expect(await readText(store, "report.csv")).toBe("zero");
  });
});

describe("a version that is deleted", () => {
  test("leaves no file, and no directory by the name of an artifact that it was all of", async () => {
    const { store, session, directory } = await newPlace();
    const first = await save(store, "first");
    const second = await save(store, "second");

    await store.deleteVersion(scope, "report.csv", second, never);
    expect((await readdir(directory)).toSorted()).toEqual(["0", "0.meta"]);
    await store.deleteVersion(scope, "report.csv", first, never);
    expect(await readdir(session)).toEqual([]);
  });

  test("stays when a peer of the original has written into it", async () => {
    const { store, directory } = await newPlace();
    const saved = await save(store, "ours");
    await writeFile(join(directory, "0"), "peer");

    expect(await store.deleteVersion(scope, "report.csv", saved, never)).toBe(false);
    expect(await readText(store, "report.csv", 0)).toBe("peer");
  });

  test("that cannot be deleted is reported by name and version, without a path", async ({
    skip,
  }) => {
    skip(isRoot, "root may write everywhere");
    const { store, directory } = await newPlace();
    const saved = await save(store, "ours");
    await chmod(directory, 0o555);
    onTestFinished(() => chmod(directory, 0o755));

    await expect(store.deleteVersion(scope, "report.csv", saved, never)).rejects.toMatchObject({
      reason: "unavailable",
      message:
        'Artifact "report.csv" version 0 of session web-1 could not be deleted: the artifact store denies access.',
    });
  });
});

describe("staged files", () => {
  const staged = ".str-0123456789abcdef01234567.tmp";

  test("are gone after a save, and after one that failed there is no artifact", async () => {
    const { store, session } = await newPlace();
    const tooFew = { ...sourceOf("abc"), sizeBytes: 4 };
    await expect(store.save(scope, "report.csv", tooFew, csv, never)).rejects.toMatchObject({
      reason: "unavailable",
    });
    expect(await readdir(session)).toEqual([]);

    await save(store, "x");
    expect(await readdir(session)).toEqual(["report.csv"]);
  });

  test("of a saver that was killed are removed a day later, by the next save there", async () => {
    const { store, session } = await newPlace();
    await mkdir(session, { recursive: true });
    const old = join(session, staged);
    const young = join(session, staged.replace("0123", "cafe"));
    const foreign = join(session, "notes.tmp");
    for (const path of [old, young, foreign]) await writeFile(path, "half a vers");
    const past = new Date(Date.now() - leftoverAgeMs - 60_000);
    for (const path of [old, foreign]) await utimes(path, past, past);

    await save(store, "x");

    expect((await readdir(session)).toSorted()).toEqual(
      [".str-cafe456789abcdef01234567.tmp", "notes.tmp", "report.csv"].toSorted(),
    );
  });

  test("of a name that is an artifact's are left alone", async () => {
    const { store, session } = await newPlace();
    await store.save(scope, staged, sourceOf("an artifact"), csv, never);
    const past = new Date(Date.now() - leftoverAgeMs - 60_000);
    await utimes(join(session, staged), past, past);

    await save(store, "x");

    expect(await readText(store, staged)).toBe("an artifact");
  });
});

describe("the check", () => {
  const unavailable = { name: "StoreError", reason: "unavailable" };

  test("leaves nothing in a store that works", async () => {
    const { store, base } = await newPlace();
    await store.check(never);
    expect(await readdir(base)).toEqual([]);
  });

  test("makes a base directory whose parent is there", async () => {
    const base = join(await temporaryDirectory(), "artifacts");
    await createFilesystemStore({ basePath: base }).check(never);
    expect((await stat(base)).isDirectory()).toBe(true);
  });

  test("does not make a whole path, which is a volume that is not mounted", async () => {
    const parent = await temporaryDirectory();
    const store = createFilesystemStore({ basePath: join(parent, "sam", "artifacts") });

    await expect(store.check(never)).rejects.toMatchObject({
      ...unavailable,
      message:
        "The artifact store cannot be used: its directory is missing, and so is the directory above.",
    });
    expect(await readdir(parent)).toEqual([]);
  });

  test("refuses a base that is a file", async () => {
    const base = join(await temporaryDirectory(), "artifacts");
    await writeFile(base, "");
    await expect(createFilesystemStore({ basePath: base }).check(never)).rejects.toMatchObject({
      ...unavailable,
      message: "The artifact store's base path is not a directory.",
    });
  });

  test("refuses a base that cannot be written", async ({ skip }) => {
    skip(isRoot, "root may write everywhere");
    const { store, base } = await newPlace();
    await chmod(base, 0o555);
    await expect(store.check(never)).rejects.toMatchObject({
      ...unavailable,
      message: "The artifact store cannot be used: the artifact store denies access.",
    });
  });

  test("does not hide that a base went away later", async () => {
    const { store, base } = await newPlace();
    await store.check(never);
    await rm(base, { recursive: true });

    const message = "The artifact store's directory is missing.";
    await expect(open(store)).rejects.toMatchObject({ ...unavailable, message });
    await expect(store.versions(scope, "report.csv", never)).rejects.toMatchObject({ message });
    await expect(save(store, "x")).rejects.toMatchObject({ message });
    await expect(stat(base)).rejects.toMatchObject({ code: "ENOENT" });
  });
});
