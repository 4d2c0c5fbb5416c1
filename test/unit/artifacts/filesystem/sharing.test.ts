import { execFile, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import {
  claimVersion,
  listVersions,
  nextVersion,
} from "../../../../worker/artifacts/filesystem/versions.ts";
import { artifactKey } from "../../../../worker/artifacts/scope.ts";
import { csv, never, readText, scope, sourceOf, temporaryDirectory } from "../fixtures.ts";

const levels = "ed_test/user-42/web-1/report.csv";

/** Runs a program beside this file with arguments and gives what it printed as JSON. */
async function run(program: string, ...programArguments: string[]): Promise<number[]> {
  const path = join(import.meta.dirname, program);
  const { stdout } = await promisify(execFile)(process.execPath, [path, ...programArguments]);
  return JSON.parse(stdout) as number[];
}

test(
  "two processes that save one name at the same time get versions of their own",
  { tags: "full" },
  async () => {
    const base = await temporaryDirectory();
    const count = 40;

    const [left, right] = await Promise.all([
      run("saver.ts", base, "report.csv", String(count), "left"),
      run("saver.ts", base, "report.csv", String(count), "right"),
    ]);

    await using store = createFilesystemStore({ basePath: base });
    const all = [...Array(2 * count).keys()];
    expect([...left, ...right].toSorted((a, b) => a - b)).toEqual(all);
    expect(await store.versions(scope, "report.csv", never)).toEqual(all);
    for (let i = 0; i < count; i++) {
      expect(await readText(store, "report.csv", left[i])).toBe(`left ${i}`);
      expect(await readText(store, "report.csv", right[i])).toBe(`right ${i}`);
    }
  },
);

test(
  "savers never touch what a peer of the original saves at the same time",
  { tags: "full" },
  async () => {
    const base = await temporaryDirectory();
    const directory = join(base, levels);
    const count = 40;

    const [ours, peers] = await Promise.all([
      run("saver.ts", base, "report.csv", String(count), "ours"),
      run("peer-saver.ts", directory, String(count), "peer"),
    ]);

    await using store = createFilesystemStore({ basePath: base });
    expect(new Set(ours).size).toBe(count);
    for (const [i, version] of peers.entries()) {
      const opened = await store.open(scope, { filename: "report.csv", version }, never);
      expect(opened.metadata).toEqual({ mimeType: "text/x-peer" });
      opened.body.destroy();
      expect(await readText(store, "report.csv", version)).toBe(`peer ${i}`);
    }
    for (const [i, version] of ours.entries()) {
      if (peers.includes(version)) continue;
      expect(await readText(store, "report.csv", version)).toBe(`ours ${i}`);
    }
  },
);

describe("claiming a version", () => {
  async function placeWithStaged() {
    const base = await temporaryDirectory();
    const directory = join(base, "report.csv");
    await mkdir(directory);
    const staged = { contentPath: join(base, "content"), metaPath: join(base, "meta") };
    await writeFile(staged.contentPath, "ours");
    await writeFile(staged.metaPath, '{"mime_type": "text/csv"}');
    return { directory, staged, key: artifactKey(scope, "report.csv") };
  }

  test("takes the next number when another saver was faster", async () => {
    const { directory, staged, key } = await placeWithStaged();
    const first = await nextVersion(directory);
    await writeFile(join(directory, "0"), "peer");
    await writeFile(join(directory, "1"), "peer");

    expect(await claimVersion(directory, staged, first, key)).toBe(2);
    expect(await listVersions(directory)).toEqual([2]);
    expect(await readFile(join(directory, "0"), "utf8")).toBe("peer");
  });

  test("notices a peer that chose the same number, and leaves the version to it", async () => {
    const { directory, staged, key } = await placeWithStaged();
    const first = await nextVersion(directory);
    await writeFile(join(directory, "0.meta"), '{"mime_type": "text/x-peer"}');

    expect(await claimVersion(directory, staged, first, key)).toBeUndefined();
    await writeFile(join(directory, "0"), "peer");

    expect(await readFile(join(directory, "0.meta"), "utf8")).toContain("text/x-peer");
    expect(await nextVersion(directory)).toBe(1);
  });

  test("gives up when every number is taken from under it", { tags: "full" }, async () => {
    const { directory, staged, key } = await placeWithStaged();
    for (let version = 0; version <= 1000; version++) {
      writeFileSync(join(directory, String(version)), "");
    }

    await expect(claimVersion(directory, staged, 0, key)).rejects.toMatchObject({
      reason: "unavailable",
      message:
        'Artifact "report.csv" of session web-1 could not be saved: too many others are saving it at the same time.',
    });
  });

  test("takes nothing when its metadata cannot be put there", async () => {
    const { directory, staged, key } = await placeWithStaged();
    await rm(staged.metaPath);

    await expect(claimVersion(directory, staged, 0, key)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await nextVersion(directory)).toBe(0);
  });
});

test("content is sent again when its staging place is taken away during the save", async () => {
  const base = await temporaryDirectory();
  await using store = createFilesystemStore({ basePath: base });
  await store.save(scope, "other.csv", sourceOf("other"), csv, never);
  let opened = 0;
  const source = {
    sizeBytes: 4,
    open: () =>
      Readable.from(
        (async function* () {
          opened++;
          yield Buffer.from("ou");
          if (opened === 1) await rm(join(base, "ed_test/user-42/web-1"), { recursive: true });
          yield Buffer.from("rs");
        })(),
        { objectMode: false },
      ),
  };

  const saved = await store.save(scope, "report.csv", source, csv, never);

  expect(opened).toBe(2);
  expect(saved).toMatchObject({ version: 0, sizeBytes: 4 });
  expect(await readText(store, "report.csv")).toBe("ours");
});

test("a full disk is reported as such, without a path, and leaves nothing", async ({ skip }) => {
  const mount = await temporaryDirectory();
  const script = `mount -t tmpfs -o size=64k none "$0" && exec "$@"`;
  const inNamespace = ["--map-root-user", "--mount", "sh", "-c", script, mount];
  const probe = spawnSync("unshare", [...inNamespace, "true"]);
  skip(probe.status !== 0, "no file system can be mounted here");

  const program = `
    import { Readable } from "node:stream";
    import { readdirSync } from "node:fs";
    const { createFilesystemStore } = await import(process.argv[1]);
    const store = createFilesystemStore({ basePath: process.argv[2] });
    const scope = { root: "ed_test", userId: "u", sessionId: "s" };
    const source = { sizeBytes: 100_000, open: () => Readable.from([Buffer.alloc(100_000)]) };
    const error = await store
      .save(scope, "big.bin", source, { mimeType: "a/b" }, new AbortController().signal)
      .catch((error) => error);
    const left = readdirSync(process.argv[2], { recursive: true });
    console.log(JSON.stringify({ reason: error.reason, message: error.message, left }));
  `;
  const module = join(import.meta.dirname, "../../../../worker/artifacts/filesystem/store.ts");
  const saver = [process.execPath, "--input-type=module", "-e", program, module, mount];
  const { stdout } = spawnSync("unshare", [...inNamespace, ...saver], { encoding: "utf8" });

  expect(JSON.parse(stdout)).toEqual({
    reason: "unavailable",
    message:
      'Artifact "big.bin" of session s could not be saved: no space is left in the artifact store.',
    left: ["ed_test", "ed_test/u", "ed_test/u/s"],
  });
});
