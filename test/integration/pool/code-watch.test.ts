/**
 * The code of tools followed for real: real files, real links, real file system events.
 */
import {
  appendFile,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { CodeSource } from "../../../worker/runners/runner.ts";
import { CodeWatch, settleMs } from "../../../worker/pool/code/code-watch.ts";
import { fingerprintCode } from "../../../worker/pool/code/fingerprint.ts";
import {
  ChangeHints,
  type WatchedDirectory,
  maxWatchedDirectories,
} from "../../../worker/support/change-hints.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { inotifyWatches } from "../../support/inotify-watches.ts";
import { patience } from "../../support/patience.ts";

/** Longer than any test: what is seen before was not seen by polling. */
const neverMs = 600_000;
const never = new AbortController().signal;

const byEvents = { how: "by events", hints: true, pollMs: neverMs };
const byPolling = { how: "by polling alone", hints: false, pollMs: 50 };
type Means = Omit<typeof byEvents, "how">;

let base: string;
let tools: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "code-watch-"));
  tools = join(base, "tools");
  await mkdir(tools);
  onTestFinished(() => rm(base, { recursive: true }));
});

/** Writes a file below the tools, with the directories that it needs. */
async function write(name: string, text: string): Promise<string> {
  const path = join(tools, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, text);
  return path;
}

/** Replaces a file as careful editors do. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${base}/next`, text);
  await rename(`${base}/next`, path);
}

/** Follows the tools, and has them settled: from now on a new version is news. */
async function follow(
  { hints, pollMs }: Means,
  sources: readonly CodeSource[] = [{ path: tools, depth: "tree" }],
): Promise<CodeWatch> {
  const log = { debug() {}, warn() {} };
  // To this clock everything has just been written, so that code settles first.
  const clock = { ...systemClock, nowMs: () => 0 };
  const runners = new Map([["python", { sources }]] as const);
  const watch = new CodeWatch({ runners, clock, log, hints, pollMs });
  onTestFinished(() => watch[Symbol.asyncDispose]());
  expect(watch.versionOf("python")).toBe(0);
  await until(watch, 1);
  return watch;
}

/** Waits for a version, or a later one. */
async function until(watch: CodeWatch, version: number): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const check = (): void => {
    if (watch.versionOf("python") >= version) reached.resolve();
  };
  using _ = watch.onChange(check);
  check();
  await reached.promise;
}

/** Waits until a change is seen and has settled. */
async function seen(watch: CodeWatch, change: () => Promise<unknown>): Promise<void> {
  const before = watch.versionOf("python");
  await change();
  await until(watch, before + 2);
}

/** Mounts `tool.py` as the kubelet does: a link through `..data`, which is exchanged as a whole. */
async function mountConfigMap(generation: number): Promise<void> {
  await write(`..v${generation}/tool.py`, `generation = ${generation}`);
  await symlink(`..v${generation}`, join(tools, "..data_tmp"));
  await rename(join(tools, "..data_tmp"), join(tools, "..data"));
  if (generation === 1) await symlink("..data/tool.py", join(tools, "tool.py"));
}

const followed = (means: typeof byEvents | typeof byPolling): void => {
  test("has changed when a module is edited, again and again", async () => {
    const path = await write("tool.py", "version = 0");
    const watch = await follow(means);
    await seen(watch, () => writeFile(path, "version = 1"));
    await seen(watch, () => appendFile(path, "\nversion = 2"));
    await seen(watch, () => writeFile(path, "version = 3"));
  });

  test("has changed when another file takes a module's place, again and again", async () => {
    const path = await write("tool.py", "version = 0");
    const watch = await follow(means);
    for (const version of [1, 2, 3]) await seen(watch, () => replace(path, `version = ${version}`));
  });

  test("has changed when a module appears in a package, and when it goes", async () => {
    await write("package/deep/__init__.py", "");
    const watch = await follow(means);
    await seen(watch, () => write("package/deep/added.py", ""));
    await seen(watch, () => rm(join(tools, "package/deep/added.py")));
  });

  test("has changed when a file of a package that came later is edited", async () => {
    const watch = await follow(means);
    await seen(watch, () => write("later/node_modules/package/index.js", "1"));
    await seen(watch, () => write("later/node_modules/package/index.js", "22"));
  });

  test("has changed when the links of a ConfigMap are exchanged, again and again", async () => {
    await mountConfigMap(1);
    const watch = await follow(means);
    for (const generation of [2, 3]) await seen(watch, () => mountConfigMap(generation));
  });

  test("has changed when a linked package elsewhere is edited", async () => {
    await mkdir(join(base, "elsewhere/package"), { recursive: true });
    await writeFile(join(base, "elsewhere/package/index.js"), "1");
    await symlink(join(base, "elsewhere/package"), join(tools, "linked"));
    const watch = await follow(means);
    await seen(watch, () => writeFile(join(base, "elsewhere/package/index.js"), "22"));
  });

  test(
    "has changed when many files were written, once the last of them is",
    { tags: "full" },
    async () => {
      const watch = await follow(means);
      for (let file = 0; file < 200; file++) await write(`package/${file % 10}/${file}.py`, "");
      await seen(watch, () => write("package/last.py", ""));
      const after = watch.versionOf("python");
      await seen(watch, () => write("package/0/0.py", "changed"));
      expect(watch.versionOf("python")).toBeGreaterThan(after);
    },
  );

  test("has changed when one of 2,000 modules is edited", { tags: "full" }, async () => {
    const paths = Array.from({ length: 2_000 }, (_, index) => `package${index % 50}/${index}.py`);
    for (const path of paths) await write(path, "1");
    const watch = await follow(means);
    await seen(watch, () => write(paths[777] ?? "", "22"));
  });
};
describe("code in a directory of tools, followed by events,", () => followed(byEvents));
describe("code in a directory of tools, followed by polling alone,", { tags: "full" }, () =>
  followed(byPolling),
);

describe("code in a directory of tools", () => {
  const both = { hints: true, pollMs: 50 };

  test("has changed when the directory is deleted, when it comes back and when it is edited then", async () => {
    const path = await write("tool.py", "version = 0");
    const watch = await follow(both);
    await seen(watch, () => rm(tools, { recursive: true }));
    await seen(watch, () => mkdir(tools));
    await seen(watch, () => writeFile(path, "version = 1"));
  });

  test("has changed when the directory is a link that comes to lead elsewhere", async () => {
    await rm(tools, { recursive: true });
    for (const name of ["one", "two"]) await mkdir(join(base, name));
    await symlink("one", tools);
    const watch = await follow(both);
    await seen(watch, async () => {
      await symlink("two", join(base, "next"));
      await rename(join(base, "next"), tools);
    });
    await seen(watch, () => writeFile(join(base, "two/tool.py"), ""));
  });

  test("has changed when a directory above it is exchanged", async () => {
    for (const release of ["1", "2"])
      await mkdir(join(base, "releases", release, "tools"), { recursive: true });
    await symlink("releases/1", join(base, "current"));
    const watch = await follow(both, [{ path: join(base, "current/tools"), depth: "tree" }]);
    await seen(watch, async () => {
      await symlink("releases/2", join(base, "next"));
      await rename(join(base, "next"), join(base, "current"));
    });
  });

  test("is followed by events in a directory that came to the place of another", async () => {
    await write("package/one.py", "1");
    const watch = await follow(byEvents);
    await seen(watch, async () => {
      await rm(join(tools, "package"), { recursive: true });
      await write("package/one.py", "22");
    });
    await seen(watch, () => write("package/one.py", "333"));
  });

  test(
    "is never older than the change before last says, while it is written as fast as can be",
    { tags: "full" },
    async () => {
      const path = await write("tool.py", "0");
      const watch = await follow(both);
      let written = 0;
      /** What was on the disk when a version was told. */
      const onDisk = new Map([[watch.versionOf("python"), 0]]);
      using _ = watch.onChange((runtime) => onDisk.set(watch.versionOf(runtime), written));
      const isTimeOver = timer(20 * settleMs);
      const isOver = (): boolean => isTimeOver() && onDisk.size > 5;
      const writing = (async () => {
        while (!isOver()) await replace(path, String(++written));
      })();
      let checks = 0;
      do {
        // As a sandbox is made ahead: its version first, then what is in it; and it is kept for as
        // long as it may be used.
        const version = watch.versionOf("python");
        const loaded = Number(await readFile(path, "utf8"));
        while (watch.versionOf("python") === version && !isOver()) {
          expect(loaded).toBeGreaterThanOrEqual(onDisk.get(version - 1) ?? 0);
          checks++;
          await setImmediate();
        }
      } while (!isOver());
      await writing;
      expect(checks).toBeGreaterThan(onDisk.size);
      await until(watch, watch.versionOf("python") + 2);
      expect(onDisk.get(watch.versionOf("python"))).toBe(written);
    },
  );
});

/** Says whether so many milliseconds are over. */
function timer(ms: number): () => boolean {
  const endMs = performance.now() + ms;
  return () => performance.now() >= endMs;
}

describe("packages that are installed beside an interpreter", () => {
  test.each([byEvents, byPolling])(
    "have changed when one is upgraded, followed $how",
    async (means) => {
      await write("package/__init__.py", "");
      await write("package-1.0.dist-info/METADATA", "");
      await write("editable.pth", "/source");
      const watch = await follow(means, [{ path: tools, depth: "listing" }]);
      await seen(watch, () =>
        rename(join(tools, "package-1.0.dist-info"), join(tools, "package-1.1.dist-info")),
      );
      await seen(watch, () => writeFile(join(tools, "editable.pth"), "/source/elsewhere"));
      await seen(watch, () => write("single_module.py", ""));
    },
  );

  test("have changed when a file directly in one is replaced", async () => {
    await write("package/__init__.py", "");
    const watch = await follow(byPolling, [{ path: tools, depth: "listing" }]);
    await seen(watch, () => replace(join(tools, "package/__init__.py"), "changed"));
  });

  test("are not looked through", async () => {
    await write("package/deep/module.py", "");
    const { directories } = await fingerprintCode([{ path: tools, depth: "listing" }], never);
    expect(directories.map(({ path }) => path)).toEqual([tools]);
  });
});

describe("a fingerprint", () => {
  const of = (path: string) => fingerprintCode([{ path, depth: "tree" }], never);

  test("finds the same in the same code", async () => {
    await write("package/module.py", "");
    expect(await of(tools)).toEqual(await of(tools));
  });

  test("finds a file changed that has the same size, and the time of writing that it had", async () => {
    const path = await write("tool.py", "version = 0");
    const { atime, mtime, size } = await stat(path);
    // A time that can be written as it was read.
    await utimes(path, atime, mtime);
    const before = await of(tools);
    const { mtimeMs, ctimeMs } = await stat(path);
    await vi.waitFor(async () => {
      await writeFile(path, "version = 1");
      await utimes(path, atime, mtime);
      expect((await stat(path)).ctimeMs).toBeGreaterThan(ctimeMs);
    }, patience);
    expect(await stat(path)).toMatchObject({ size, mtimeMs });
    expect((await of(tools)).fingerprint).not.toBe(before.fingerprint);
  });

  test("goes through what links lead to once, be it in circles", async () => {
    await write("package/module.py", "");
    await symlink("package", join(tools, "inside"));
    await symlink(".", join(tools, "package/self"));
    await symlink("nowhere", join(tools, "dangling"));
    await symlink("endless", join(tools, "endless"));
    await mkdir(join(base, "outside"));
    await symlink("../tools", join(base, "outside/back"));
    await symlink("../outside", join(tools, "first"));
    await symlink("../../outside", join(tools, "package/second"));
    const { directories, failure } = await of(tools);
    expect(directories.map(({ path }) => path).toSorted()).toEqual([
      join(base, "outside"),
      tools,
      join(tools, "package"),
    ]);
    expect(failure).toBeUndefined();
  });

  test("goes through once what is reached by a link, and all of it where another way would be shorter", async () => {
    await write("package/module.py", "");
    await symlink("package", join(tools, "inside"));
    await symlink(".", join(base, "link"));
    const directories = [tools, join(tools, "package")];
    expect((await of(join(base, "link/tools"))).directories.map(({ path }) => path)).toEqual(
      directories,
    );
    await mkdir(join(base, "other"));
    await symlink("../tools/package", join(base, "other/package"));
    const sources: readonly CodeSource[] = [
      { path: join(tools, "package"), depth: "listing" },
      { path: join(base, "other"), depth: "tree" },
    ];
    await mkdir(join(tools, "package/deep"));
    const seen = (await fingerprintCode(sources, never)).directories.map(({ path }) => path);
    expect(seen).toContain(join(tools, "package/deep"));
  });

  test("says what stands in its way, and goes on with the rest", async () => {
    const path = await write("file", "");
    const { failure, fingerprint } = await of(join(path, "below"));
    expect(failure).toEqual({ path: join(path, "below"), code: "ENOTDIR" });
    expect(fingerprint).toBeDefined();
  });

  test("lets others have their turn", { tags: "full" }, async () => {
    for (let file = 0; file < 2_000; file++) await write(`${file}.py`, "");
    let turns = 0;
    let isOver = false;
    const takingTurns = (async () => {
      for (; !isOver; turns++) await setImmediate();
    })();
    await of(tools);
    isOver = true;
    await takingTurns;
    expect(turns).toBeGreaterThan(50);
  });

  test("ends with its signal", async () => {
    await write("package/module.py", "");
    const end = new AbortController();
    const looking = fingerprintCode([{ path: tools, depth: "tree" }], end.signal);
    end.abort(new Error("enough"));
    await expect(looking).rejects.toThrow("enough");
  });
});

describe("events of the file system", () => {
  async function directory(name: string): Promise<WatchedDirectory> {
    const path = join(tools, name);
    await mkdir(path, { recursive: true });
    return { path, inode: (await stat(path)).ino };
  }

  test(
    "are had of a bounded number of directories, the upper ones, and given back",
    { tags: "full" },
    async () => {
      const before = await inotifyWatches();
      for (let index = 0; index < maxWatchedDirectories + 100; index++)
        await directory(`node_modules/${index}`);
      const watch = await follow({ hints: true, pollMs: 50 });
      expect((await inotifyWatches()) - before).toBe(maxWatchedDirectories);
      await seen(watch, () => write("tool.py", ""));
      expect((await inotifyWatches()) - before).toBe(maxWatchedDirectories);
      // Of the last ones there are none: they are polled.
      await seen(watch, () => write(`node_modules/${maxWatchedDirectories + 99}/index.js`, ""));
      await watch[Symbol.asyncDispose]();
      await vi.waitFor(async () => expect(await inotifyWatches()).toBe(before), patience);
    },
  );

  test("are given back of directories that are not followed any more", async () => {
    const before = await inotifyWatches();
    using hints = new ChangeHints(() => {});
    const one = await directory("one");
    const two = await directory("two");
    hints.follow([one, two]);
    expect((await inotifyWatches()) - before).toBe(2);
    hints.follow([two]);
    expect((await inotifyWatches()) - before).toBe(1);
    hints.follow([]);
    expect((await inotifyWatches()) - before).toBe(0);
  });

  test("end one pause, be it the next one, and not before its least length", async () => {
    using hints = new ChangeHints(() => {});
    const pause = (leastMs: number, mostMs: number, signal = never) =>
      hints.pause({ leastMs, mostMs }, systemClock, signal);
    hints.follow([await directory("one")]);
    const paused = pause(0, neverMs);
    await write("one/tool.py", "");
    await paused;
    await write("one/tool.py", "changed");
    await pause(0, neverMs);
    const end = new AbortController();
    const long = pause(neverMs, 2 * neverMs, end.signal);
    await write("one/tool.py", "changed again");
    end.abort(new Error("enough"));
    await expect(long).rejects.toThrow("enough");
  });

  test("are done without when there are no more to be had, which is told once", async () => {
    const told: unknown[] = [];
    using hints = new ChangeHints((error) => told.push(error));
    const file = await write("file", "");
    hints.follow([
      { path: join(tools, "gone"), inode: 1 },
      { path: join(file, "below"), inode: 2 },
    ]);
    expect(told).toEqual([]);
    // What the kernel refuses, as it does when there are no more.
    await symlink("endless", join(tools, "endless"));
    const endless = { path: join(tools, "endless"), inode: 3 };
    hints.follow([endless, await directory("one")]);
    expect(told).toMatchObject([{ code: "ELOOP" }]);
    hints.follow([endless]);
    expect(told).toHaveLength(1);
  });
});
