/**
 * Tools that try to change the cached file of their input, however their sandboxes start.
 */
import { readFile, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Rig, type RigTool, reachableDirectory, startRig } from "../support/workers/rig.ts";

/** Tries everything that would change a file, and tells what it saw. */
const source = `
import os, shutil

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
    def descriptor():
        fd = os.open(path, os.O_RDONLY)
        with open(f"/proc/self/fd/{fd}", "w") as file:
            file.write("changed")
    did = {name: attempt(act) for name, act in {
        "append": lambda: write("a"),
        "chmod": chmod,
        "truncate": lambda: os.truncate(path, 0),
        "write": lambda: write("w"),
        "descriptor": descriptor,
        "times": lambda: os.utime(path, (0, 0)),
        "link": lambda: os.link(path, "output/linked"),
    }.items()}
    attempt(lambda: os.remove("output/linked"))
    shutil.copy(path, "output/copy.txt")
    did["replace"] = attempt(lambda: os.replace("output/copy.txt", path))
    did["remove"] = attempt(lambda: os.remove(path))
    return {"text": text, "isReadOnly": [each.split(",")[0] == "ro" for each in options], "did": did}
`;

const content = "the same for all calls";

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
          did: { append: true, chmod: true, truncate: true, write: true, replace: true },
        },
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
