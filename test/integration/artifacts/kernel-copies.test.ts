/**
 * Inputs and outputs on file systems: copied by the kernel, and past JavaScript.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmod,
  mkdtemp,
  open,
  readFile,
  readdir,
  readlink,
  rm,
  stat,
  statfs,
  writeFile,
} from "node:fs/promises";
import { fstatSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { createFilesystemStore } from "../../../worker/artifacts/filesystem/store.ts";
import type { ArtifactSource } from "../../../worker/artifacts/store.ts";
import { FileCopier, leastCopyBytes } from "../../../worker/support/files/copy-file.ts";
import { writeContent } from "../../../worker/support/files/write-content.ts";
import { expectRefusal, never, newScope, text } from "../../conformance/artifacts/under-test.ts";
import { type Reflinking, reflinkingFileSystem } from "../../support/loop-file-system.ts";
import { patience } from "../../support/patience.ts";
import { newWorkDir } from "../../support/sandboxes/work-dir.ts";
import { ownFileSystem } from "../../support/sandboxes/own-file-system.ts";

const run = promisify(execFile);
const MiB = 1024 ** 2;

async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "str-copies-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

/** An open file with content of its own. */
async function fileOf(directory: string, content: Uint8Array): Promise<FileHandle> {
  const path = join(directory, "source");
  await writeFile(path, content);
  return opened(path);
}

async function opened(path: string): Promise<FileHandle> {
  const file = await open(path);
  onTestFinished(() => file.close().catch(() => undefined));
  return file;
}

/** A source of a file whose bytes must not come through this process. */
function kernelOnly(file: FileHandle, sizeBytes: number): ArtifactSource {
  const read = (): never => {
    throw new Error("the content was streamed");
  };
  return { sizeBytes, open: read, file };
}

/** A file with a hole only, which takes seconds to copy. */
async function vastFile(directory: string): Promise<FileHandle> {
  const path = join(directory, "vast");
  const file = await open(path, "w+");
  onTestFinished(() => file.close().catch(() => undefined));
  await file.truncate(vastBytes);
  return file;
}

/** Looks at the size of a file again and again. */
function watchSize(file: FileHandle, onSize: (bytes: number) => void): Disposable {
  const timer = setInterval(() => onSize(fstatSync(file.fd).size), 1);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Processes that have the file open, this one left out. */
async function processesWith(path: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) continue;
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const links = descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => ""));
    if ((await Promise.all(links)).includes(path)) found.push(pid);
  }
  return found;
}

const vastBytes = 64 * 1024 * MiB;

describe("an input of a file", () => {
  test("is copied into the work directory without a byte of its stream", async () => {
    const content = randomBytes(leastCopyBytes + 5);
    const file = await fileOf(await temporaryDirectory(), content);
    await chmod(`/proc/self/fd/${file.fd}`, 0o644);
    const body = file.createReadStream();
    await using workDir = await newWorkDir();
    await workDir.writeInput("data.bin", { body, file, sizeBytes: content.length }, never);
    expect(body.bytesRead).toBe(0);
    expect(body.destroyed).toBe(true);
    const path = join(workDir.path, "input/data.bin");
    expect(content.equals(await readFile(path))).toBe(true);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const { bytes, files } = workDir.staged();
    expect(files).toBe(1);
    expect(bytes).toBeGreaterThanOrEqual(content.length);
  });

  test.for([
    ["shorter", 5_000, -1, "5000 of the announced"],
    ["shorter", leastCopyBytes + 2, -1, `${leastCopyBytes + 2} of the announced`],
    ["longer", 5_000, 1, "more than the announced"],
    ["longer", leastCopyBytes + 2, 1, "more than the announced"],
  ] as const)("that is %s than announced is an error", async ([, bytes, difference, reason]) => {
    const content = randomBytes(bytes);
    const file = await fileOf(await temporaryDirectory(), content);
    const sizeBytes = content.length - difference;
    await using workDir = await newWorkDir();
    const writing = workDir.writeInput(
      "data.bin",
      { body: file.createReadStream(), file, sizeBytes },
      never,
    );
    await expect(writing).rejects.toThrow(`${reason} ${sizeBytes} bytes arrived`);
  });

  test.for([0, 1, 5_000, MiB - 1, MiB, leastCopyBytes - 1])("of %i bytes, too", async (bytes) => {
    const content = randomBytes(bytes);
    const file = await fileOf(await temporaryDirectory(), content);
    await using workDir = await newWorkDir();
    const body = file.createReadStream();
    await workDir.writeInput("small", { body, file, sizeBytes: content.length }, never);
    expect(body.bytesRead).toBe(0);
    expect(content.equals(await readFile(join(workDir.path, "input/small")))).toBe(true);
  });
});

test("an input that is given up in the midst of its copy ends, and no process goes on with it", async () => {
  const directory = await temporaryDirectory();
  const file = await vastFile(directory);
  const body = file.createReadStream({ autoClose: false });
  await using workDir = await newWorkDir(directory);
  const abort = new AbortController();
  const content = { body, file, sizeBytes: vastBytes };
  const writing = workDir.writeInput("data.bin", content, abort.signal);
  writing.catch(() => undefined);
  const path = join(workDir.path, "input/data.bin");
  await vi.waitFor(async () => expect((await stat(path)).size).toBeGreaterThan(MiB), patience);
  abort.abort(new Error("enough"));
  await expect(writing).rejects.toThrow("enough");
  expect(body.destroyed).toBe(true);
  expect(body.bytesRead).toBe(0);
  expect(await processesWith(path)).toEqual([]);
});

describe("a save of a file", () => {
  test("copies it past its streams, each time from its first byte on", async () => {
    const directory = await temporaryDirectory();
    const content = randomBytes(5 * MiB + 1);
    const source = kernelOnly(await fileOf(directory, content), content.length);
    await using store = createFilesystemStore({ basePath: directory });
    const scope = newScope();
    for (const version of [0, 1]) {
      const saved = await store.save(scope, "a.bin", source, text, never);
      expect(saved).toMatchObject({ version, sizeBytes: content.length });
      const { root, userId, sessionId } = scope;
      const path = join(directory, root, userId, sessionId, "a.bin", `${version}`);
      expect(content.equals(await readFile(path))).toBe(true);
      expect((await stat(path)).mode & 0o777).toBe(0o644);
    }
  });

  test.for([1, leastCopyBytes])("of %i bytes takes no mode of the file over", async (bytes) => {
    const directory = await temporaryDirectory();
    const file = await fileOf(directory, randomBytes(bytes));
    await chmod(`/proc/self/fd/${file.fd}`, 0o4777);
    await using store = createFilesystemStore({ basePath: directory });
    const scope = newScope();
    await store.save(scope, "a.bin", kernelOnly(file, bytes), text, never);
    const { root, userId, sessionId } = scope;
    const saved = await stat(join(directory, root, userId, sessionId, "a.bin/0"));
    expect(saved.mode & 0o7777).toBe(0o644);
  });

  test("is told that the store is full, and leaves nothing", async () => {
    const base = await ownFileSystem("4m");
    const content = randomBytes(8 * MiB);
    const file = await fileOf(await temporaryDirectory(), content);
    await using store = createFilesystemStore({ basePath: base });
    const open = () => file.createReadStream({ start: 0, autoClose: false });
    const source = { sizeBytes: content.length, open, file };
    const scope = newScope();
    const saving = store.save(scope, "a.bin", source, text, never);
    await expectRefusal(saving, "unavailable", "no space is left in the artifact store");
    expect(await readdir(join(base, scope.root, scope.userId, scope.sessionId))).toEqual([]);
  });

  test("ends at once when it is aborted, and leaves nothing", async () => {
    const directory = await temporaryDirectory();
    await using store = createFilesystemStore({ basePath: directory });
    const abort = new AbortController();
    const scope = newScope();
    const source = kernelOnly(await vastFile(directory), vastBytes);
    const saving = store.save(scope, "a.bin", source, text, abort.signal);
    saving.catch(() => undefined);
    const session = join(directory, scope.root, scope.userId, scope.sessionId);
    await vi.waitFor(async () => {
      const sizes = (await readdir(session)).map(async (name) => stat(join(session, name)));
      expect((await Promise.all(sizes)).some(({ size }) => size > MiB)).toBe(true);
    }, patience);
    abort.abort(new Error("enough"));
    await expect(saving).rejects.toThrow("enough");
    expect(await readdir(session)).toEqual([]);
  });
});

test("a file that grows while it is copied is not read beyond its size", async () => {
  const directory = await temporaryDirectory();
  const source = await vastFile(directory);
  const target = await open(join(directory, "target"), "wx");
  onTestFinished(() => target.close());
  let largestBytes = 0;
  using _watch = watchSize(target, (bytes) => (largestBytes = Math.max(largestBytes, bytes)));
  const sizeBytes = 64 * MiB;
  expect(await new FileCopier().copy({ source, target, sizeBytes }, never)).toBe(false);
  expect(largestBytes).toBeLessThanOrEqual(sizeBytes + 1);
  expect((await target.stat()).size).toBe(0);
});

test("a file that is cut short while it is copied ends its copy", async () => {
  const directory = await temporaryDirectory();
  const source = await vastFile(directory);
  const target = await open(join(directory, "target"), "wx");
  onTestFinished(() => target.close());
  const copying = new FileCopier().copy({ source, target, sizeBytes: vastBytes }, never);
  await vi.waitFor(async () => expect((await target.stat()).size).toBeGreaterThan(0), patience);
  await source.truncate(leastCopyBytes);
  expect(await copying).toBe(false);
  expect((await target.stat()).size).toBe(0);
});

test.for([
  ["small", 3 * MiB],
  ["large", leastCopyBytes + MiB],
] as const)(
  "a %s file that was short for its copy is streamed from the start",
  async ([, size]) => {
    const directory = await temporaryDirectory();
    const content = randomBytes(size);
    const path = join(directory, "source");
    await writeFile(path, content.subarray(0, size - MiB));
    const source = await opened(path);
    const target = await open(join(directory, "target"), "wx");
    onTestFinished(() => target.close());
    expect(await new FileCopier().copy({ source, target, sizeBytes: size }, never)).toBe(false);
    await writeFile(path, content);
    const body = source.createReadStream({ start: 0, autoClose: false });
    await writeContent({ body, sizeBytes: size, onBytes: () => undefined }, target, never);
    expect(content.equals(await readFile(join(directory, "target")))).toBe(true);
  },
);

async function expectSharedBlocks(kind: Reflinking, context: TestContext): Promise<void> {
  const directory = await reflinkingFileSystem(kind, context);
  const content = randomBytes(64 * MiB);
  await using source = await fileOf(directory, content);
  await run("sync", ["--file-system", directory]);
  const { bsize, bavail } = await statfs(directory);
  await using target = await open(join(directory, "target"), "wx+");
  const copy = { source, target, sizeBytes: content.length };
  expect(await new FileCopier().copy(copy, never)).toBe(true);
  await run("sync", ["--file-system", directory]);
  const usedBytes = (bavail - (await statfs(directory)).bavail) * bsize;
  expect(usedBytes).toBeLessThan(content.length / 4);
  expect(content.equals(await readFile(join(directory, "target")))).toBe(true);
}

const sharesBlocks = "on %s a copy shares its blocks";
test.for<Reflinking>(["btrfs"])(sharesBlocks, expectSharedBlocks);
test.for<Reflinking>(["xfs"])(sharesBlocks, { tags: "full" }, expectSharedBlocks);
