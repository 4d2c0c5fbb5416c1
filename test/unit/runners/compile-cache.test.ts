/**
 * Which compiled code a module's calls get, and what is taken from the run that makes it.
 */
import {
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { CompileCaches, type CompileCacheOptions } from "../../../worker/runners/compile-cache.ts";
import { OpenWorkDir, openWorkDirHandles } from "../../../worker/sandbox/work-dir.ts";
import { newId } from "../../../worker/support/ids.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

const waitingMs = 10_000;
const version = "v24.1.0-x64-0a1b2c3d-65534";

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "str-cache-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** What a run of a module leaves in `output/`. */
type Leave = (output: string) => Promise<void>;

const leaves =
  (files: Readonly<Record<string, string>>): Leave =>
  async (output) => {
    await mkdir(join(output, version));
    for (const [name, content] of Object.entries(files))
      await writeFile(join(output, version, name), content);
  };

/** Caches of `a.js` and `b.js`, with the runs that were made. */
async function newCaches(leave: Leave, changes: Partial<CompileCacheOptions> = {}) {
  const toolsDir = await temporaryDirectory();
  for (const module of ["a.js", "b.js"]) await writeFile(join(toolsDir, module), "1");
  const runs: string[] = [];
  const lines: string[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const caches = new CompileCaches({
    toolsDir,
    scratchDir: await temporaryDirectory(),
    newId,
    log: createLogger("debug", log),
    run: async (module, take) => {
      runs.push(module);
      const path = await temporaryDirectory();
      for (const name of ["input", "output"]) await mkdir(join(path, name));
      await leave(join(path, "output"));
      const handles = await openWorkDirHandles(path);
      await using workDir = new OpenWorkDir(path, handles, undefined, () => undefined);
      await take(workDir);
    },
    ...changes,
  });
  onTestFinished(() => caches[Symbol.asyncDispose]());
  /** The cache of a module, once there is one. */
  const made = (module: string) =>
    vi.waitFor(async () => {
      const directory = await caches.find(module);
      expect(directory).toBeDefined();
      return directory!;
    }, waitingMs);
  return { caches, toolsDir, runs, lines, made };
}

describe("a module's cache", () => {
  test("is what a run of it left, for later calls, readable by everybody", async () => {
    const { caches, runs, made } = await newCaches(leaves({ "0a1b2c3d": "code" }));
    expect(await caches.find("a.js")).toBeUndefined();
    const directory = await made("a.js");
    expect(await readFile(join(directory, version, "0a1b2c3d"), "utf8")).toBe("code");
    for (const [path, mode] of [
      [directory, 0o755],
      [join(directory, version), 0o755],
      [join(directory, version, "0a1b2c3d"), 0o644],
    ] as const)
      expect((await stat(path)).mode & 0o777).toBe(mode);
    expect(await caches.find("a.js")).toBe(directory);
    expect(runs).toEqual(["a.js"]);
  });

  test("is its own: no other module's calls get it", async () => {
    const { made } = await newCaches(leaves({ "1": "code" }));
    expect(await made("a.js")).not.toBe(await made("b.js"));
  });

  test("is made anew when the module's file changes, and serves until then", async () => {
    let content = "old";
    const { caches, toolsDir, runs, made } = await newCaches((output) =>
      leaves({ "1": content })(output),
    );
    const directory = await made("a.js");
    content = "new";
    await writeFile(join(toolsDir, "a.js"), "another one");
    expect(await caches.find("a.js")).toBe(directory);
    await vi.waitFor(async () =>
      expect(await readFile(join(directory, version, "1"), "utf8")).toBe("new"),
    );
    expect(runs).toEqual(["a.js", "a.js"]);
    expect(await readdir(join(directory, version))).toEqual(["1"]);
  });

  test("is none for a module that is not there", async () => {
    const { caches, runs } = await newCaches(leaves({}));
    expect(await caches.find("absent.js")).toBeUndefined();
    expect(runs).toEqual([]);
  });

  test("is made one at a time", async () => {
    let running = 0;
    const { made } = await newCaches(async (output) => {
      expect(++running).toBe(1);
      await leaves({ "1": "code" })(output);
      running--;
    });
    await Promise.all([made("a.js"), made("b.js")]);
  });
});

describe("of what a run left", () => {
  test("nothing is taken but files of Node's naming in the directory of a version", async () => {
    const { made } = await newCaches(async (output) => {
      await leaves({ "1": "code", "a.js": "no", "0a1b2c3d4": "no" })(output);
      await symlink("/etc/hostname", join(output, version, "2"));
      await mkdir(join(output, version, "3"));
      await writeFile(join(output, "4"), "no");
    });
    const directory = await made("a.js");
    expect(await readdir(directory, { recursive: true })).toEqual([version, join(version, "1")]);
  });

  test("no more is taken than fits", async () => {
    const { made } = await newCaches(async (output) => {
      await leaves({ "1": "", "2": "" })(output);
      for (const name of ["1", "2"]) await truncate(join(output, version, name), 40 * 1024 * 1024);
    });
    expect(await readdir(join(await made("a.js"), version))).toHaveLength(1);
  });

  test.each<[string, Leave]>([
    ["nothing", async () => {}],
    ["a directory of another name", (output) => mkdir(join(output, "cache")).then(() => {})],
    ["a link for the directory", (output) => symlink("/etc", join(output, version))],
  ])("%s is no cache, and tried again only when the file changes", async (_what, leave) => {
    const { caches, toolsDir, runs, lines } = await newCaches(leave);
    await caches.find("a.js");
    await vi.waitFor(() => expect(lines.join("")).toContain("could not be compiled ahead"));
    expect(await caches.find("a.js")).toBeUndefined();
    expect(runs).toEqual(["a.js"]);
    await writeFile(join(toolsDir, "a.js"), "corrected");
    await caches.find("a.js");
    expect(runs).toEqual(["a.js", "a.js"]);
  });
});

test("closing calls off the run under way, begins no other, and waits for it", async () => {
  const events: string[] = [];
  const { caches } = await newCaches(leaves({}), {
    run: async (module, _take, signal) => {
      events.push(`begin ${module}`);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      events.push(`end ${module}`);
    },
  });
  await caches.find("a.js");
  await caches.find("b.js");
  await caches[Symbol.asyncDispose]();
  expect(events).toEqual(["begin a.js", "end a.js"]);
  expect(await caches.find("b.js")).toBeUndefined();
});
