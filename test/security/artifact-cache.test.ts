/**
 * Tools that try to change the cached file of their input, however their sandboxes start.
 */
import { chmod, readFile, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isRoot } from "../support/is-root.ts";
import { type Rig, type RigTool, reachableDirectory, startRig } from "../support/workers/rig.ts";

/** Tries everything that would change a file, and tells what it saw. */
const source = `
import ctypes, mmap, os, shutil

def attempt(act):
    try:
        act()
        return True
    except OSError:
        return False

def run(ctx):
    [path] = ctx.list_artifacts().values()
    with open(path) as file:
        text = file.read()
    options = [line.split()[5] for line in open("/proc/self/mountinfo") if line.split()[4] == path]
    def write(mode):
        with open(path, mode) as file:
            file.write("changed")
    def chmod():
        os.chmod(path, 0o666)
    def mapped():
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as bytes:
            bytes[0:1] = b"X"
    def mount(flags):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", path.encode(), None, flags, None) != 0:
            raise OSError(ctypes.get_errno(), "mount")
    def unmount():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.umount2(path.encode(), 2) != 0:
            raise OSError(ctypes.get_errno(), "umount2")
    def descriptor():
        fd = os.open(path, os.O_RDONLY)
        with open(f"/proc/self/fd/{fd}", "w") as file:
            file.write("changed")
    did = {name: attempt(act) for name, act in {
        "append": lambda: write("a"),
        "chmod": chmod,
        "truncate": lambda: os.truncate(path, 0),
        "write": lambda: write("w"),
        "mapped": mapped,
        # MS_REMOUNT, alone and with MS_BIND: without MS_RDONLY the file would be writable.
        "remount": lambda: mount(32),
        "remount_bind": lambda: mount(32 | 4096),
        "unmount": unmount,
        "descriptor": descriptor,
        "times": lambda: os.utime(path, (0, 0)),
        "link": lambda: os.link(path, "output/linked"),
    }.items()}
    attempt(lambda: os.remove("output/linked"))
    shutil.copy(path, "output/copy.txt")
    did["move"] = attempt(lambda: os.rename(path, "output/moved"))
    attempt(lambda: os.rename("output/moved", path))
    did["replace"] = attempt(lambda: os.replace("output/copy.txt", path))
    did["remove"] = attempt(lambda: os.remove(path))
    return {"text": text, "isReadOnly": [each.split(",")[0] == "ro" for each in options], "did": did}
`;

const content = "the same for all calls";

/** What a tool does to a file of its own. An empty file cannot be mapped: it is written before. */
const changesOfOwn = {
  ...{ append: true, chmod: true, truncate: true, write: true, mapped: true, descriptor: true },
  ...{ move: true, replace: true, remove: true },
  ...{ remount: false, remount_bind: false, unmount: false },
};

describe("the cached file of an input", () => {
  let rig: Rig;
  let cacheDirectory: string;

  beforeAll(async () => {
    cacheDirectory = join(await reachableDirectory(), "cache");
    const tool = (more: RigTool): RigTool => ({ module: "changes", function: "run", ...more });
    rig = await startRig({
      isWarm: true,
      tools: {
        cold: tool({ start: "cold" }),
        cold_restrictive: tool({ start: "cold", sandbox_profile: "restrictive" }),
        pool: tool({ start: "pool", warm: { min: 1, max: 1 } }),
        template: tool({ start: "template", warm: { min: 1, max: 1 } }),
      },
      files: { "changes.py": source },
      environment: { ARTIFACT_CACHE_DIR: cacheDirectory },
    });
    const bytes = Buffer.from(content);
    const saved = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
    const metadata = { mimeType: "text/plain" };
    await rig.store.save(rig.scope, "in.txt", saved, metadata, new AbortController().signal);
  });
  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
    await rm(join(cacheDirectory, ".."), { recursive: true });
  });

  function call(tool: string) {
    const references = new Map([["input_file", { filename: "in.txt", version: undefined }]]);
    return rig.call(tool, {}, { references });
  }

  /** The one complete file of the cache. */
  async function entry(): Promise<string> {
    const [shard = ""] = await readdir(join(cacheDirectory, "entries"));
    const [name = "", ...others] = await readdir(join(cacheDirectory, "entries", shard));
    expect(others).toEqual([]);
    return join(cacheDirectory, "entries", shard, name);
  }

  test.for(["cold", "cold_restrictive"])(
    "is mounted read-only where a sandbox starts cold (%s), and no tool changes it",
    { tags: "promise-C8" },
    async (tool) => {
      const result = await call(tool);
      expect(result).toMatchObject({
        kind: "success",
        toolResult: { text: content, isReadOnly: [true] },
      });
      const { did } = (result as unknown as { toolResult: { did: Record<string, boolean> } })
        .toolResult;
      expect(Object.entries(did).filter(([, isDone]) => isDone)).toEqual([]);
      expect(await readFile(await entry(), "utf8")).toBe(content);
      expect((await stat(await entry())).mode & 0o777).toBe(0o644);
    },
  );

  test.for(["pool", "template"])(
    "is copied for an idle sandbox (%s), whose tool changes its own",
    { tags: "promise-C8" },
    async (tool) => {
      await rig.untilWaiting(tool);
      expect(await call(tool)).toMatchObject({
        kind: "success",
        toolResult: {
          text: content,
          isReadOnly: [],
          did: changesOfOwn,
        },
      });
      expect(await readFile(await entry(), "utf8")).toBe(content);
      expect((await stat(await entry())).nlink).toBe(1);
    },
  );

  test.runIf(isRoot)(
    "is copied for a cold sandbox whose user cannot pass the cache, and the tool changes its own",
    { tags: "promise-C8" },
    async () => {
      const above = join(cacheDirectory, "..");
      const { mode } = await stat(above);
      await chmod(above, 0o700);
      onTestFinished(() => chmod(above, mode & 0o7777));
      expect(await call("cold")).toMatchObject({
        kind: "success",
        toolResult: { text: content, isReadOnly: [], did: changesOfOwn },
      });
      expect(await readFile(await entry(), "utf8")).toBe(content);
      expect((await stat(await entry())).nlink).toBe(1);
    },
  );

  test("costs the calls after the first no link, and no copy is left", async () => {
    onTestFinished(() => expect(rig.logLines.join("")).not.toContain("artifacts.cache_"));
    await call("cold");
    const processes = await readdir(join(cacheDirectory, "processes"), { recursive: true });
    expect(processes.filter((name) => name.includes("/"))).toEqual([
      expect.stringMatching(/\/alive$/),
    ]);
    expect((await stat(await entry())).nlink).toBe(1);
  });
});
