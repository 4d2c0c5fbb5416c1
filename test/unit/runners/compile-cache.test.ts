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
import { basename, join } from "node:path";
import { Writable } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  CompileCaches,
  fileFingerprint,
  type Compilation,
  type CompileCacheOptions,
  retryAfterMs,
} from "../../../worker/runners/node/compile-cache.ts";
import { newId } from "../../../worker/support/ids.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { newWorkDir } from "../../support/sandboxes/work-dir.ts";

const waitingMs = 10_000;
const version = "v24.1.0-x64-0a1b2c3d-65534";

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "str-cache-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** What a run of a module leaves in `output/`. */
type Leave = (output: string) => Promise<void>;

const compiled = (module: string): Compilation => ({ module, variant: "" });

const leaves =
  (files: Readonly<Record<string, string>>): Leave =>
  async (output) => {
    await mkdir(join(output, version));
    for (const [name, content] of Object.entries(files))
      await writeFile(join(output, version, name), content);
  };

/** Caches of `a.js` and `b.js`, with the runs that were made. */
async function newCaches(leave: Leave, changes: Partial<CompileCacheOptions<Compilation>> = {}) {
  const toolsDir = await temporaryDirectory();
  const scratchDir = await temporaryDirectory();
  const clock = { ms: 0, monotonicMs: () => clock.ms };
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
    fingerprintOf: ({ module }) => fileFingerprint(join(toolsDir, module)),
    scratchDir,
    maxModules: 10,
    clock,
    newId,
    log: createLogger("debug", log),
    run: async ({ module }, take) => {
      runs.push(module);
      await using workDir = await newWorkDir();
      await leave(join(workDir.path, "output"));
      await take(workDir);
    },
    ...changes,
  });
  onTestFinished(() => caches[Symbol.asyncDispose]());
  /** What the next call of a module gets, without making use of it. */
  const find = async (module: string): Promise<string | undefined> => {
    await using lease = await caches.lease(compiled(module));
    return lease?.directory;
  };
  /** The cache of a module, once there is one. */
  const made = (module: string) =>
    vi.waitFor(async () => {
      const directory = await find(module);
      expect(directory).toBeDefined();
      return directory!;
    }, waitingMs);
  /** Resolves when so many runs have ended with these words in all. */
  const ended = (words: string, count: number) =>
    vi.waitFor(
      () => expect(lines.filter((line) => line.includes(words))).toHaveLength(count),
      waitingMs,
    );
  return { caches, clock, toolsDir, scratchDir, runs, find, made, ended };
}

describe("a module's cache", () => {
  test("is what a run of it left, for later calls, readable by everybody", async () => {
    const { find, runs, made } = await newCaches(leaves({ "0a1b2c3d": "code" }));
    expect(await find("a.js")).toBeUndefined();
    const directory = await made("a.js");
    expect(await readFile(join(directory, version, "0a1b2c3d"), "utf8")).toBe("code");
    for (const [path, mode] of [
      [directory, 0o755],
      [join(directory, version), 0o755],
      [join(directory, version, "0a1b2c3d"), 0o644],
    ] as const)
      expect((await stat(path)).mode & 0o777).toBe(mode);
    expect(await find("a.js")).toBe(directory);
    expect(runs).toEqual(["a.js"]);
  });

  test("is its own: no other module's calls get it", async () => {
    const { made } = await newCaches(leaves({ "1": "code" }));
    expect(await made("a.js")).not.toBe(await made("b.js"));
  });

  test("is that of a variant, and calls keep it when the variant is dropped", async () => {
    const { caches, scratchDir, runs, ended } = await newCaches(leaves({ "1": "code" }));
    const variants = ["old", "new"].map((variant) => ({ module: "a.js", variant }));
    for (const of of variants) await caches.want(of);
    await ended("module.compiled", 2);
    expect(runs).toEqual(["a.js", "a.js"]);
    const leases = await Promise.all(variants.map((of) => caches.lease(of)));
    const [former, present] = leases.map((lease) => basename(lease!.directory));
    expect(former).not.toBe(present);
    caches.drop(({ variant }) => variant === "old");
    expect(await readdir(scratchDir)).toHaveLength(2);
    for (const lease of leases) await lease![Symbol.asyncDispose]();
    expect(await readdir(scratchDir)).toEqual([present]);
  });

  test("is made anew when the module's file changes, with nothing of the former one, which serves until then", async () => {
    let files = { "1": "old" } as Record<string, string>;
    const { toolsDir, scratchDir, runs, find, made, ended } = await newCaches((output) =>
      leaves(files)(output),
    );
    const former = await made("a.js");
    files = { "2": "new" };
    await writeFile(join(toolsDir, "a.js"), "another one");
    expect(await find("a.js")).toBe(former);
    await ended("module.compiled", 2);
    const present = await made("a.js");
    expect(await readdir(present, { recursive: true })).toEqual([version, join(version, "2")]);
    expect(await readdir(scratchDir)).toEqual([basename(present)]);
    expect(runs).toEqual(["a.js", "a.js"]);
  });

  test("stays for the calls that mount it when a new one is made, and goes with the last of them", async () => {
    const { caches, toolsDir, scratchDir, made, ended } = await newCaches(leaves({ "1": "code" }));
    const former = await made("a.js");
    const leases = [await caches.lease(compiled("a.js")), await caches.lease(compiled("a.js"))];
    await writeFile(join(toolsDir, "a.js"), "another one");
    await caches.want(compiled("a.js"));
    await ended("module.compiled", 2);
    const present = await made("a.js");
    expect(present).not.toBe(former);
    for (const lease of leases) {
      expect(await readFile(join(lease!.directory, version, "1"), "utf8")).toBe("code");
      await lease![Symbol.asyncDispose]();
    }
    expect(await readdir(scratchDir)).toEqual([basename(present)]);
  });

  test("is given up for another module's when there are too many, the one that was called least recently", async () => {
    const { toolsDir, scratchDir, runs, find, made } = await newCaches(leaves({ "1": "code" }), {
      maxModules: 2,
    });
    await writeFile(join(toolsDir, "c.js"), "1");
    const a = await made("a.js");
    await made("b.js");
    await find("a.js");
    const c = await made("c.js");
    await vi.waitFor(
      async () =>
        expect((await readdir(scratchDir)).sort()).toEqual([basename(a), basename(c)].sort()),
      waitingMs,
    );
    expect(await find("a.js")).toBe(a);
    await made("b.js");
    expect(runs).toEqual(["a.js", "b.js", "c.js", "b.js"]);
  });

  test("is tried again after a pause when the run itself fails", async () => {
    const runs: number[] = [];
    const { caches, clock, scratchDir, ended } = await newCaches(leaves({}), {
      run: async () => {
        runs.push(clock.ms);
        throw new Error("no sandbox");
      },
    });
    const dueMs = [0, retryAfterMs, 2 * retryAfterMs];
    for (const [run, ms] of dueMs.entries()) {
      clock.ms = ms - 1;
      await caches.want(compiled("a.js"));
      clock.ms = ms;
      await caches.want(compiled("a.js"));
      await ended("could not be compiled ahead", run + 1);
    }
    expect(runs.slice(1)).toEqual(dueMs.slice(1));
    expect(await readdir(scratchDir)).toEqual([]);
  });

  test("is there when a later try succeeds", async () => {
    let isFull = true;
    const { caches, clock, made, ended } = await newCaches(async (output) => {
      if (isFull) throw new Error("no space left on device");
      await leaves({ "1": "code" })(output);
    });
    await caches.want(compiled("a.js"));
    await ended("could not be compiled ahead", 1);
    isFull = false;
    clock.ms += retryAfterMs;
    await made("a.js");
  });

  test("is none for a module that is not there", async () => {
    const { runs, find } = await newCaches(leaves({}));
    expect(await find("absent.js")).toBeUndefined();
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
  test(
    "nothing is taken but files of Node's naming in the directory of a version",
    { tags: "promise-C2" },
    async () => {
      const { made } = await newCaches(async (output) => {
        await leaves({ "1": "code", "a.js": "no", "0a1b2c3d4": "no" })(output);
        await symlink("/etc/hostname", join(output, version, "2"));
        await mkdir(join(output, version, "3"));
        await writeFile(join(output, "4"), "no");
      });
      const directory = await made("a.js");
      expect(await readdir(directory, { recursive: true })).toEqual([version, join(version, "1")]);
    },
  );

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
    const { caches, clock, toolsDir, scratchDir, runs, find, ended } = await newCaches(leave);
    await caches.want(compiled("a.js"));
    await ended("could not be compiled ahead", 1);
    clock.ms = Number.MAX_SAFE_INTEGER;
    expect(await find("a.js")).toBeUndefined();
    expect(runs).toEqual(["a.js"]);
    await writeFile(join(toolsDir, "a.js"), "corrected");
    await caches.want(compiled("a.js"));
    await ended("could not be compiled ahead", 2);
    expect(runs).toEqual(["a.js", "a.js"]);
    expect(await readdir(scratchDir)).toEqual([]);
  });
});

test("closing calls off the run under way, begins no other, and waits for it", async () => {
  const events: string[] = [];
  const { caches } = await newCaches(leaves({}), {
    run: async ({ module }, _take, signal) => {
      events.push(`begin ${module}`);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      events.push(`end ${module}`);
    },
  });
  await caches.want(compiled("a.js"));
  await caches.want(compiled("b.js"));
  await caches[Symbol.asyncDispose]();
  expect(events).toEqual(["begin a.js", "end a.js"]);
  expect(await caches.lease(compiled("b.js"))).toBeUndefined();
});
