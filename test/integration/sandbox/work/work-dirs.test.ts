/**
 * Work directories: made, given out, removed, and swept after dead workers.
 */
import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import {
  access,
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { SandboxError } from "../../../../worker/sandbox/sandbox.ts";
import type { LeftFile, LeftOutputs, WorkDir } from "../../../../worker/sandbox/work/work-dir.ts";
import { WorkDirs } from "../../../../worker/sandbox/work/work-dirs.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { newId } from "../../../../worker/support/ids.ts";
import { makeFiles } from "./many-files.ts";
import {
  never,
  openDescriptors,
  openedSince,
  presentDescriptors,
  requireOtherUser,
  requireRoot,
  sandboxUid,
  temporaryDirectory,
} from "../sandbox-host.ts";
import { isRoot } from "../../../support/is-root.ts";
import { LoopWatch } from "../../../support/cpu-time.ts";
import { patience } from "../../../support/patience.ts";
import { programEnvironment } from "../../../support/workers/program-environment.ts";

const run = promisify(execFile);

/** Opens work directories as the worker does; they are closed after the test. */
async function openWorkDirs(base: string, removeFailures: unknown[] = []): Promise<WorkDirs> {
  const workDirs = await WorkDirs.open({
    base,
    ownerId: sandboxUid,
    newId,
    clock: systemClock,
    onRemoveFailed: (error) => void removeFailures.push(error),
  });
  onTestFinished(() => workDirs[Symbol.asyncDispose]());
  return workDirs;
}

/** Outputs whose files are closed after the test. */
async function leftOutputs(workDir: WorkDir, maxFiles: number): Promise<LeftOutputs> {
  const left = await workDir.leftOutputs(maxFiles);
  onTestFinished(async () => {
    await Promise.all(left.files.map(({ handle }) => handle.close()));
  });
  return left;
}

/** A worker in a process of its own, of the same user or of another. */
class OtherWorker {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  root = "";
  readonly unremovable: string[] = [];

  constructor(uid?: number) {
    const program = fileURLToPath(new URL("./work-dirs-process.ts", import.meta.url));
    const identity = uid === undefined ? {} : { uid, gid: uid };
    this.#child = spawn(process.execPath, [program], {
      ...identity,
      env: programEnvironment(),
      cwd: "/",
    });
    this.#child.stderr.pipe(process.stderr);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    onTestFinished(() => this.kill());
  }

  async open(base: string): Promise<string> {
    const answer = await this.say(`open ${base}`);
    if (answer.startsWith("opened ")) this.root = answer.slice("opened ".length);
    return answer;
  }

  /** Says one command and returns what it is answered. */
  async say(command: string): Promise<string> {
    this.#child.stdin.write(`${command}\n`);
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done === true) throw new Error("the other worker ended");
      if (!value.startsWith("unremovable ")) return value;
      this.unremovable.push(value);
    }
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function permissions(path: string): Promise<string> {
  const { mode, uid } = await lstat(path);
  return `${(mode & 0o7777).toString(8)} ${uid}`;
}

const ownUid = process.getuid!();
const toolUid = sandboxUid ?? ownUid;

describe("a work directory", () => {
  test("belongs to the sandbox's user alone, on a way that others can only pass", async () => {
    const base = join(await temporaryDirectory(), "work");
    const workDirs = await openWorkDirs(base);
    await using workDir = await workDirs.take();
    expect(await permissions(base)).toBe(`711 ${ownUid}`);
    expect(await permissions(workDirs.root)).toBe(`711 ${ownUid}`);
    expect(await permissions(workDir.path)).toBe(`700 ${toolUid}`);
    expect(await permissions(join(workDir.path, "input"))).toBe(`700 ${toolUid}`);
    expect(await permissions(join(workDir.path, "output"))).toBe(`700 ${toolUid}`);
    expect(await permissions(join(workDir.path, "status.pipe"))).toBe(`600 ${toolUid}`);
    expect((await lstat(join(workDir.path, "status.pipe"))).isFIFO()).toBe(true);
    await workDir.writeArguments("{}");
    expect(await permissions(join(workDir.path, "runner_args.json"))).toBe(`600 ${toolUid}`);
    expect((await readdir(workDir.path)).toSorted()).toEqual([
      "input",
      "output",
      "runner_args.json",
      "status.pipe",
    ]);
  });

  test("is like that under any umask", async (context) => {
    requireRoot(context);
    const umask = process.umask(0o077);
    onTestFinished(() => void process.umask(umask));
    const parent = await temporaryDirectory();
    const workDirs = await openWorkDirs(join(parent, "a/b/c"));
    await using workDir = await workDirs.take();
    for (const level of ["a", "a/b", "a/b/c"])
      expect(await permissions(join(parent, level))).toBe(`711 ${ownUid}`);
    expect(await permissions(parent)).toBe(`755 ${ownUid}`);
    expect(await permissions(workDirs.root)).toBe(`711 ${ownUid}`);
    expect(await permissions(join(workDir.path, "status.pipe"))).toBe(`600 ${toolUid}`);
  });

  test("is each caller's own, however many ask at once", async () => {
    const workDirs = await openWorkDirs(await temporaryDirectory());
    const taken = await Promise.all(Array.from({ length: 40 }, () => workDirs.take()));
    expect(new Set(taken.map(({ path }) => path)).size).toBe(40);
    await Promise.all(taken.map((workDir) => workDir[Symbol.asyncDispose]()));
  });

  test("takes files for the tool, which are the tool's", async () => {
    const workDirs = await openWorkDirs(await temporaryDirectory());
    await using workDir = await workDirs.take();
    await workDir.writeInput("data.csv", { body: Readable.from("content") }, never);
    await workDir.writeArguments("{}");
    for (const [path, content] of [
      ["input/data.csv", "content"],
      ["runner_args.json", "{}"],
    ] as const) {
      expect(await permissions(join(workDir.path, path))).toBe(`600 ${toolUid}`);
      expect(await readFile(join(workDir.path, path), "utf8")).toBe(content);
    }
    const content = Readable.from("content");
    await expect(workDir.writeInput("data.csv", { body: content }, never)).rejects.toThrow(
      "EEXIST",
    );
    expect(content.destroyed).toBe(true);
  });

  test("takes no file where a link stands", async () => {
    const workDirs = await openWorkDirs(await temporaryDirectory());
    await using workDir = await workDirs.take();
    const target = join(workDirs.root, "target");
    await symlink(target, join(workDir.path, "input/data.csv"));
    const content = Readable.from("content");
    await expect(workDir.writeInput("data.csv", { body: content }, never)).rejects.toThrow(
      "EEXIST",
    );
    expect(content.destroyed).toBe(true);
    expect(await exists(target)).toBe(false);
  });

  test("is gone some time after it was given back, and so is all of the worker's at the end", async () => {
    const base = await temporaryDirectory();
    const workDirs = await openWorkDirs(base);
    const workDir = await workDirs.take();
    await writeFile(join(workDir.path, "output/left.txt"), "x");
    await workDir[Symbol.asyncDispose]();
    await vi.waitFor(async () => expect(await exists(workDir.path)).toBe(false), patience);
    await workDirs[Symbol.asyncDispose]();
    expect(await readdir(base)).toEqual([]);
  });

  test("can be asked for by workers that start together where nothing is yet", async () => {
    const base = join(await temporaryDirectory(), "a/b/c");
    await Promise.all(Array.from({ length: 5 }, () => openWorkDirs(base)));
    expect(await readdir(base)).toHaveLength(5);
    expect(await permissions(base)).toBe(`711 ${ownUid}`);
  });

  test("leaves no descriptor open", async () => {
    const base = await temporaryDirectory();
    const before = await presentDescriptors();
    {
      await using workDirs = await openWorkDirs(base);
      for (let call = 0; call < 20; call++) {
        await using workDir = await workDirs.take();
        await writeFile(join(workDir.path, "output/left.txt"), "x");
        await using _file = (await workDir.leftOutputs(10)).files[0]!.handle;
      }
    }
    expect(await openedSince(before)).toEqual([]);
  });
});

describe("what a tool left", () => {
  /** A work directory, with `left` telling whether a file in it would be taken. */
  async function newWorkDir() {
    const workDirs = await openWorkDirs(await temporaryDirectory());
    const workDir = await workDirs.take();
    onTestFinished(() => workDir[Symbol.asyncDispose]());
    return { workDirs, workDir, output: join(workDir.path, "output") };
  }

  async function contentOf(file: LeftFile | undefined): Promise<string | undefined> {
    if (file === undefined) return undefined;
    await using handle = file.handle;
    return handle.readFile("utf8");
  }

  async function outputsOf(workDir: WorkDir, maxFiles = 100) {
    const { files, skipped } = await leftOutputs(workDir, maxFiles);
    const contents = await Promise.all(
      files.map(async (file) => [file.name, await contentOf(file)] as const),
    );
    return { contents: Object.fromEntries(contents), skipped: skipped.toSorted() };
  }

  test("is opened when it is a regular file with one link", async () => {
    const { workDir } = await newWorkDir();
    await writeFile(join(workDir.path, "result.json"), '{"result": {}}');
    const file = await workDir.openLeft("result.json");
    expect(file).toMatchObject({ name: "result.json", sizeBytes: 14 });
    expect(await contentOf(file)).toBe('{"result": {}}');
  });

  /** Things that may stand where a file should, by what they are; each is made at `path`. */
  const impostors: readonly (readonly [
    string,
    (path: string, root: string) => Promise<unknown>,
  ])[] = [
    ["a link to a file of the worker's", (path) => symlink("/etc/hostname", path)],
    ["a link into its own directory", (path) => symlink("runner_args.json", path)],
    ["a link that leads nowhere", (path) => symlink("/no/such/file", path)],
    ["a link to itself", (path) => symlink(path, path)],
    ["a named pipe without a writer", (path) => run("mkfifo", [path])],
    ["a directory", (path) => mkdir(path)],
    [
      "a second link to a file",
      async (path, root) => {
        await writeFile(join(root, "secret"), "secret");
        await link(join(root, "secret"), path);
      },
    ],
    [
      "a socket",
      async (path) => {
        const server = createServer();
        onTestFinished(() => void server.close());
        await once(server.listen(path), "listening");
      },
    ],
  ];

  test.each(impostors)("is none when it is %s", { tags: "promise-O1" }, async (_name, make) => {
    const { workDirs, workDir, output } = await newWorkDir();
    await make(join(workDir.path, "result.json"), workDirs.root);
    const before = await presentDescriptors();
    expect(await workDir.openLeft("result.json")).toBeUndefined();
    await rename(join(workDir.path, "result.json"), join(output, "output.txt"));
    expect(await outputsOf(workDir)).toEqual({ contents: {}, skipped: ["output.txt"] });
    expect(await openedSince(before)).toEqual([]);
  });

  test("is none when it is not there", async () => {
    const { workDir } = await newWorkDir();
    expect(await workDir.openLeft("result.json")).toBeUndefined();
    expect(await outputsOf(workDir)).toEqual({ contents: {}, skipped: [] });
  });

  test("is told with the size that a reader would meet, sparse or not", async () => {
    const { workDir, output } = await newWorkDir();
    await writeFile(join(output, "sparse"), "");
    await truncate(join(output, "sparse"), 2 ** 40);
    const { files } = await workDir.leftOutputs(10);
    await using _handle = files[0]!.handle;
    expect(files).toMatchObject([{ name: "sparse", sizeBytes: 2 ** 40 }]);
    expect((await lstat(join(output, "sparse"))).blocks).toBe(0);
  });

  test("in output/ comes by name, and what is no file beside it by name only", async () => {
    const { workDir, output } = await newWorkDir();
    await Promise.all(
      ["b", "a", "ü", "B", "-x", " "].map((name) => writeFile(join(output, name), name)),
    );
    await mkdir(join(output, "directory"));
    const { files } = await leftOutputs(workDir, 100);
    for (const { handle } of files) await handle.close();
    expect(files.map(({ name }) => name)).toEqual([" ", "-x", "B", "a", "b", "ü"]);
    expect((await outputsOf(workDir)).skipped).toEqual(["directory"]);
  });

  test("in output/ is looked at up to a number of files", async () => {
    const { workDir, output } = await newWorkDir();
    const names = Array.from({ length: 30 }, (_, index) => `file-${index}`);
    await Promise.all(names.map((name) => writeFile(join(output, name), name)));
    expect(Object.keys((await outputsOf(workDir, 10)).contents)).toHaveLength(10);
  });

  test("in output/ is looked at up to a thousand things that are no files", async () => {
    const { workDir, output } = await newWorkDir();
    await run("sh", ["-c", 'cd "$0" && mkdir $(seq 1500)', output]);
    const { files, skipped } = await leftOutputs(workDir, 10);
    expect(files).toEqual([]);
    expect(skipped).toHaveLength(1_000);
  });

  test("under a name that is no text is skipped", { tags: "promise-O1" }, async () => {
    const { workDir, output } = await newWorkDir();
    await run("python3", [
      "-c",
      "import os, sys; os.close(os.open(os.fsencode(sys.argv[1]) + b'/\\xff\\xfe', os.O_CREAT))",
      output,
    ]);
    // As text the name is that of this file.
    await writeFile(join(output, "\ufffd\ufffd"), "x");
    expect(await outputsOf(workDir)).toEqual({
      contents: {},
      skipped: ["\ufffd\ufffd", "\ufffd\ufffd"],
    });
  });

  test("in a directory that took the place of output/ is not taken", async () => {
    const { workDirs, workDir, output } = await newWorkDir();
    await writeFile(join(output, "real.txt"), "real");
    const elsewhere = join(workDirs.root, "elsewhere");
    await mkdir(elsewhere);
    await writeFile(join(elsewhere, "secret.txt"), "secret");
    await rename(output, join(workDir.path, "moved"));
    await symlink(elsewhere, output);
    expect(await outputsOf(workDir)).toEqual({ contents: { "real.txt": "real" }, skipped: [] });
  });

  test("is not mistaken for nothing when this process can open no more files", async () => {
    const { workDir, output } = await newWorkDir();
    await writeFile(join(workDir.path, "result.json"), "{}");
    await writeFile(join(output, "data.csv"), "x");
    await using _shortage = await withoutDescriptors();
    await expect(workDir.openLeft("result.json")).rejects.toThrow("EMFILE");
    await expect(workDir.leftOutputs(10)).rejects.toThrow("EMFILE");
  });

  test("when output/ itself is gone is nothing", async () => {
    const { workDirs, workDir, output } = await newWorkDir();
    await rm(output, { recursive: true });
    await symlink(workDirs.root, output);
    expect(await outputsOf(workDir)).toEqual({ contents: {}, skipped: [] });
  });

  test("in a directory that took the place of the work directory is not taken", async () => {
    const { workDirs, workDir } = await newWorkDir();
    await writeFile(join(workDir.path, "result.json"), "real");
    const moved = join(workDirs.root, "moved");
    await rename(workDir.path, moved);
    await mkdir(workDir.path);
    await writeFile(join(workDir.path, "result.json"), "false");
    expect(await contentOf(await workDir.openLeft("result.json"))).toBe("real");
  });
});

/** Takes every descriptor that this process may still open, until it is disposed. */
async function withoutDescriptors(): Promise<AsyncDisposable> {
  const limit = async (value: string) =>
    run("prlimit", ["--pid", String(process.pid), `--nofile=${value}:`]);
  const { stdout } = await run("prlimit", [
    ...["--pid", String(process.pid), "--nofile", "--output=SOFT", "--noheadings"],
  ]);
  const taken: number[] = [];
  await limit(String((await openDescriptors()) + 50));
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch (error) {
    expect(error).toMatchObject({ code: "EMFILE" });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const descriptor of taken) closeSync(descriptor);
      await limit(stdout.trim());
    },
  };
}

/** Python that makes trees which are hard to remove below the directory that it is started with. */
const deepTree = (levels: number): string => `
import os, sys
os.chdir(sys.argv[1])
for _ in range(${levels}):
    os.mkdir("deeper-and-deeper")
    os.chdir("deeper-and-deeper")
open("bottom", "w").close()`;
const lockedTree = `
import os, sys
os.chdir(sys.argv[1])
os.makedirs("locked/inner/innermost")
open("locked/inner/innermost/file", "w").close()
os.chmod("locked/inner/innermost", 0)
os.chmod("locked/inner", 0o100)
os.chmod("locked", 0)
os.chmod("input", 0)
os.chmod("output", 0o555)
open("read-only", "w").close()
os.chmod("read-only", 0)
os.chmod(".", 0)`;
const strangeTree = `
import os, socket, sys
os.chdir(sys.argv[1])
os.chdir("output")
os.symlink("/", "root")
os.symlink("../../..", "up")
os.symlink("loop", "loop")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
for name in [b"-rf", b"--", b"*", b"\\xff\\xfe", b"new\\nline", b" ", b"x" * 255]:
    os.close(os.open(name, os.O_CREAT))
    os.rename(name, name)
os.link("-rf", "second link")`;

const hostileTrees = [
  // Ten times as deep as a path may be long.
  ["2,000 levels deep", deepTree(2_000)],
  ["with directories that nobody may enter", lockedTree],
  ["of links, pipes, sockets and strange names", strangeTree],
] as const;

describe("a tree that a tool left", () => {
  async function isRemovedAlone([, program]: readonly [string, string]): Promise<void> {
    const base = await temporaryDirectory();
    const failures: unknown[] = [];
    const workDirs = await openWorkDirs(base, failures);
    const witness = join(base, "witness");
    await writeFile(witness, "untouched");
    const workDir = await workDirs.take();
    const identity = sandboxUid === undefined ? {} : { uid: sandboxUid, gid: sandboxUid };
    await run("python3", ["-I", "-c", program, workDir.path], {
      ...identity,
      env: { PATH: "/usr/bin" },
      cwd: "/",
    });
    await workDir[Symbol.asyncDispose]();
    await workDirs[Symbol.asyncDispose]();
    expect(failures).toEqual([]);
    expect(await readdir(base)).toEqual(["witness"]);
    expect(await readFile(witness, "utf8")).toBe("untouched");
  }
  const removedAlone = "is removed when it is %s";
  test.for(hostileTrees)(removedAlone, { tags: "promise-E7" }, isRemovedAlone);
  test.for([["10,000 levels deep", deepTree(10_000)] as const])(
    removedAlone,
    { tags: ["full", "promise-E7"] },
    isRemovedAlone,
  );

  async function isRemoved([, program]: (typeof hostileTrees)[number], context: TestContext) {
    if (isRoot) requireOtherUser(context);
    const base = await temporaryDirectory();
    const uid = isRoot ? 60_002 : ownUid;
    if (isRoot) await chown(base, uid, uid);
    const worker = new OtherWorker(isRoot ? uid : undefined);
    expect(await worker.open(base)).toMatch(/^opened/);
    const path = (await worker.say("take")).slice("took ".length);
    const identity = isRoot ? { uid, gid: uid } : {};
    await run("python3", ["-I", "-c", program, path], {
      ...identity,
      env: { PATH: "/usr/bin" },
      cwd: "/",
    });
    expect(await worker.say("dispose")).toBe("disposed");
    expect(await worker.say("close")).toBe("closed");
    expect(worker.unremovable).toEqual([]);
    expect(await readdir(base)).toEqual([]);
  }
  const title = "is removed by a worker that is not root when it is %s";
  const hardest = hostileTrees.filter(([, program]) => program === lockedTree);
  test.for(hardest)(title, isRemoved);
  test.for(hostileTrees.filter((tree) => !hardest.includes(tree)))(
    title,
    { tags: "full" },
    isRemoved,
  );

  test(
    "is removed while this process goes on with its work when it has 100,000 files",
    { tags: "full" },
    async () => {
      const failures: unknown[] = [];
      const workDirs = await openWorkDirs(await temporaryDirectory(), failures);
      const workDir = await workDirs.take();
      await makeFiles(join(workDir.path, "output"), 100_000);
      const rssBefore = process.memoryUsage.rss();
      let maxRss = 0;
      using loop = new LoopWatch();
      await workDir[Symbol.asyncDispose]();
      const look = async () => {
        maxRss = Math.max(maxRss, process.memoryUsage.rss());
        expect(await exists(workDir.path)).toBe(false);
      };
      await vi.waitFor(look, { timeout: 50_000, interval: 20 });
      expect(failures).toEqual([]);
      // To remove them here would take several times as much.
      expect(loop.longestMs).toBeLessThan(500);
      expect(maxRss - rssBefore).toBeLessThan(100 * 2 ** 20);
    },
  );

  test("and that cannot be removed is told, and keeps nothing else from going on", async (context) => {
    requireOtherUser(context);
    const base = await temporaryDirectory();
    await chown(base, 60_002, 60_002);
    const worker = new OtherWorker(60_002);
    await worker.open(base);
    const path = (await worker.say("take")).slice("took ".length);
    await mkdir(join(path, "output/of root"));
    await writeFile(join(path, "output/of root/file"), "x");
    expect(await worker.say("dispose")).toBe("disposed");
    expect(await worker.say("take")).toMatch(/^took /);
    expect(await worker.say("close")).toBe("closed");
    expect(worker.unremovable.length).toBeGreaterThan(0);
    expect(await exists(join(path, "output/of root/file"))).toBe(true);
  });

  test(
    "and that cannot be removed at first is removed as soon as it can be, and told of once",
    { tags: "promise-E7" },
    async (context) => {
      requireOtherUser(context);
      const base = await temporaryDirectory();
      await chown(base, 60_002, 60_002);
      const worker = new OtherWorker(60_002);
      await worker.open(base);
      const path = (await worker.say("take")).slice("took ".length);
      await mkdir(join(path, "output/of root"));
      await writeFile(join(path, "output/of root/file"), "x");
      expect(await worker.say("dispose")).toBe("disposed");
      await vi.waitFor(async () => {
        // What it tells comes with its answers.
        await worker.say("take");
        expect(worker.unremovable).toHaveLength(1);
      }, patience);
      await rm(join(path, "output/of root"), { recursive: true });
      await vi.waitFor(async () => expect(await exists(path)).toBe(false), patience);
      expect(await worker.say("close")).toBe("closed");
      expect(worker.unremovable).toHaveLength(1);
      expect(await readdir(base)).toEqual([]);
    },
  );
});

describe("the directory of a worker that is gone", () => {
  test("is swept by the next one, whatever is in it", async () => {
    const base = await temporaryDirectory();
    const dead = new OtherWorker();
    expect(await dead.open(base)).toMatch(/^opened/);
    const path = (await dead.say("take")).slice("took ".length);
    await run("python3", ["-I", "-c", deepTree(2_000), path]);
    await dead.kill();
    expect(await exists(path)).toBe(true);
    await openWorkDirs(base);
    expect(await exists(dead.root)).toBe(false);
  });

  test("is not swept while that one lives, however idle it is", async () => {
    const base = await temporaryDirectory();
    const living = new OtherWorker();
    await living.open(base);
    await living.say("take");
    const longAgo = new Date(Date.now() - 3_600_000);
    await utimes(living.root, longAgo, longAgo);
    await openWorkDirs(base);
    expect(await exists(living.root)).toBe(true);
    expect(await living.say("take")).toMatch(/^took /);
    // Nor the sweeper's own, by one that comes later.
    const third = new OtherWorker();
    expect(await third.open(base)).toMatch(/^opened/);
    expect((await readdir(base)).length).toBe(3);
  });

  test("is swept only after a while when it never showed a sign of life: it may be starting", async () => {
    const base = await temporaryDirectory();
    const starting = join(base, `worker-${newId()}`);
    const abandoned = join(base, `worker-${newId()}`);
    await mkdir(starting);
    await mkdir(abandoned);
    const longAgo = new Date(Date.now() - 61_000);
    await utimes(abandoned, longAgo, longAgo);
    await openWorkDirs(base);
    expect(await exists(starting)).toBe(true);
    expect(await exists(abandoned)).toBe(false);
  });

  test(
    "is all that is swept: nothing else in a directory that is shared is touched",
    { tags: "promise-E7" },
    async () => {
      const base = await temporaryDirectory();
      const outside = await temporaryDirectory();
      await writeFile(join(outside, "precious"), "x");
      const longAgo = new Date(Date.now() - 3_600_000);
      const directories = [
        "data",
        "worker-",
        "worker-1",
        `worker-${"g".repeat(24)}`,
        `worker-${"A".repeat(24)}`,
        `worker-${newId()}0`,
        `xworker-${newId()}`,
        `data/worker-${newId()}`,
      ];
      for (const name of directories) await mkdir(join(base, name));
      const file = `worker-${newId()}`;
      const leadsOutside = `worker-${newId()}`;
      await writeFile(join(base, file), "x");
      await symlink(outside, join(base, leadsOutside));
      for (const name of [...directories, file]) await utimes(join(base, name), longAgo, longAgo);
      await openWorkDirs(base);
      for (const name of directories) expect(await exists(join(base, name)), name).toBe(true);
      expect(await exists(join(base, file))).toBe(true);
      expect((await lstat(join(base, leadsOutside))).isSymbolicLink()).toBe(true);
      expect(await exists(join(outside, "precious"))).toBe(true);
    },
  );

  test(
    "is swept once by several workers that start at the same time",
    { tags: "full" },
    async () => {
      const base = await temporaryDirectory();
      const dead = new OtherWorker();
      await dead.open(base);
      await dead.kill();
      await Promise.all([openWorkDirs(base), openWorkDirs(base), openWorkDirs(base)]);
      expect(await exists(dead.root)).toBe(false);
      expect(await readdir(base)).toHaveLength(3);
    },
  );

  test(
    "keeps no worker from starting when it cannot be removed, and is told",
    { tags: "full" },
    async (context) => {
      requireOtherUser(context);
      const base = await temporaryDirectory();
      await chown(base, 60_002, 60_002);
      const abandoned = join(base, `worker-${newId()}`);
      await mkdir(abandoned);
      await writeFile(join(abandoned, "of root"), "x");
      const longAgo = new Date(Date.now() - 3_600_000);
      await utimes(abandoned, longAgo, longAgo);
      const worker = new OtherWorker(60_002);
      expect(await worker.open(base)).toMatch(/^opened/);
      expect(worker.unremovable).toHaveLength(1);
      expect(worker.unremovable[0]).toContain(abandoned);
      expect(await worker.say("take")).toMatch(/^took /);
    },
  );

  test(
    "counts as in use where another user's cannot be looked into",
    { tags: "full" },
    async (context) => {
      requireOtherUser(context);
      const base = await temporaryDirectory();
      await chown(base, 60_002, 60_002);
      const living = new OtherWorker();
      await living.open(base);
      const longAgo = new Date(Date.now() - 3_600_000);
      await utimes(living.root, longAgo, longAgo);
      const worker = new OtherWorker(60_002);
      expect(await worker.open(base)).toMatch(/^opened/);
      expect(worker.unremovable).toEqual([]);
      expect(await living.say("take")).toMatch(/^took /);
    },
  );
});

describe("a directory that cannot hold work directories", () => {
  async function refusal(base: string, makeId = newId): Promise<SandboxError> {
    const error: unknown = await WorkDirs.open({
      base,
      ownerId: sandboxUid,
      newId: makeId,
      clock: systemClock,
      onRemoveFailed: () => undefined,
    }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SandboxError);
    return error as SandboxError;
  }

  test("because it is a file is refused by name", async () => {
    const base = join(await temporaryDirectory(), "file");
    await writeFile(base, "x");
    expect((await refusal(base)).message).toBe(`cannot use the work directory ${base}`);
  });

  test("because the sandbox's user cannot reach it is refused, and the way is named", async (context) => {
    requireRoot(context);
    const barrier = await temporaryDirectory();
    await chmod(barrier, 0o700);
    await mkdir(join(barrier, "a"));
    const wayThere = join(await temporaryDirectory(), "link");
    await symlink(join(barrier, "a"), wayThere);
    for (const base of [barrier, join(barrier, "a/b/c"), join(wayThere, "b")]) {
      const cause = String((await refusal(base)).cause);
      expect(cause).toContain(`${barrier} is private`);
      expect(cause).toContain(`uid ${sandboxUid}`);
    }
    // Nothing was made where it could not have been used.
    expect(await readdir(barrier, { recursive: true })).toEqual(["a"]);
  });

  test("because one on the way cannot be made is refused at once, and that one is named", async () => {
    const { cause } = await refusal("/proc/no-such-directory/a/b");
    expect(String(cause)).toMatch(/ENOENT.*'\/proc\/no-such-directory'$/);
  });

  test("because there is a file or a dead link on the way is refused, and that is named", async () => {
    const parent = await temporaryDirectory();
    const [file, deadLink] = [join(parent, "file"), join(parent, "link")];
    await writeFile(file, "x");
    await symlink("/no/such/directory", deadLink);
    expect(String((await refusal(join(file, "a/b"))).cause)).toContain(
      `${file} is not a directory`,
    );
    expect(String((await refusal(join(deadLink, "a/b"))).cause)).toContain(`'${deadLink}'`);
    expect((await readdir(parent)).toSorted()).toEqual(["file", "link"]);
  });

  test("because the first directories cannot be made leaves nothing open and nothing behind", async () => {
    const base = await temporaryDirectory();
    const before = await presentDescriptors();
    let count = 0;
    await refusal(base, () => (count++ === 0 ? newId() : "no/such/directory"));
    expect(await readdir(base)).toEqual([]);
    expect(await openedSince(before)).toEqual([]);
  });
});
