/**
 * Toolsets: what is taken of a directory and of a ZIP file, what is refused, and what changes.
 */
import { lstatSync, readdirSync, statSync } from "node:fs";
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  CopyError,
  ToolsetBudget,
  toolsetLimits,
} from "../../../../worker/manifest/toolsets/budget.ts";
import { isToolsetName } from "../../../../worker/manifest/toolsets/part.ts";
import { SnapshotWriter } from "../../../../worker/manifest/toolsets/snapshot-writer.ts";
import { Toolsets, type ToolsetsOptions } from "../../../../worker/manifest/toolsets/toolsets.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { newId } from "../../../../worker/support/ids.ts";
import { patience } from "../../../support/patience.ts";
import { profileNames, textOf } from "../fixtures.ts";
import { type ZipEntry, writeZip } from "./zip-files.ts";

const never = new AbortController().signal;
const manifest = textOf("run");

/** A directory for toolsets, one for copies, and a log. */
async function newPlace() {
  const base = await mkdtemp(join(tmpdir(), "str-toolsets-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const directory = join(base, "toolsets");
  await mkdir(directory);
  const lines: object[] = [];
  const note = (facts: object): void => void lines.push(facts);
  const options: ToolsetsOptions = {
    ...{ directory, base: join(base, "copies"), profileNames, newId, clock: systemClock },
    log: { info: note, warn: note, error: note },
    intervals: { pollMs: 10, settleMs: 10 },
  };
  const put = async (files: Readonly<Record<string, string>>): Promise<void> => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, name)), { recursive: true });
      await writeFile(join(directory, name), text);
    }
  };
  return { directory, copies: join(base, "copies"), options, lines, put };
}

const namesOf = (toolsets: Toolsets): string[] =>
  toolsets.parts.flatMap((part) => [...part.manifest.tools.keys()]);

const partOf = (toolsets: Toolsets, name: string) =>
  toolsets.parts.find((part) => part.name === name)!;

/** All paths of a copy. */
const contentOf = (directory: string): string[] =>
  readdirSync(directory, { recursive: true }).map(String).sort();

describe("a toolset", () => {
  test("is a directory or a ZIP file, whose tools have its name", async () => {
    const { directory, options, put } = await newPlace();
    await put({ "weather/manifest.yaml": textOf("now", "later"), "weather/tools.py": "x = 1" });
    writeZip(join(directory, "text-2.zip"), [
      { name: "manifest.yaml", text: manifest },
      { name: "kit/" },
      { name: "kit/run.sh", text: "#!/bin/sh", mode: 0o100755 },
    ]);
    const toolsets = await Toolsets.open(options, never);
    expect(toolsets.problems).toEqual([]);
    expect(namesOf(toolsets)).toEqual(["text-2__run", "weather__now", "weather__later"]);
    const [text, weather] = toolsets.parts;
    expect(weather!.manifest.tools.get("weather__now")).toMatchObject({
      name: "weather__now",
      module: "tools",
      toolset: { name: "weather", revision: weather!.revision },
    });
    expect(text!.revision).not.toBe(weather!.revision);
  });

  test("is copied whole, so that every user can read it and none can write", async () => {
    const { directory, options, put } = await newPlace();
    await put({ "a/manifest.yaml": manifest, "a/pack/x.py": "x = 1", "a/.git/config": "secret" });
    await chmod(join(directory, "a/pack"), 0o700);
    await chmod(join(directory, "a/pack/x.py"), 0o700);
    writeZip(join(directory, "b.zip"), [
      { name: ".DS_Store" },
      { name: "manifest.yaml", text: manifest },
      { name: "pack/x.py", text: "x = 1", mode: 0o106777 },
    ]);
    const toolsets = await Toolsets.open(options, never);
    for (const name of ["a", "b"]) {
      using lease = toolsets.lease(partOf(toolsets, name))!;
      expect(contentOf(lease.directory)).toEqual(["manifest.yaml", "pack", "pack/x.py"]);
      const modeOf = (path: string) =>
        (statSync(join(lease.directory, path)).mode & 0o7777).toString(8);
      expect(["", "manifest.yaml", "pack", "pack/x.py"].map(modeOf)).toEqual([
        ...["755", "644", "755", "755"],
      ]);
      expect(await readFile(join(lease.directory, "pack/x.py"), "utf8")).toBe("x = 1");
    }
    expect(toolsets.parts.map(({ revision }) => revision)[0]).toBe(toolsets.parts[1]!.revision);
  });

  test("has several tools of one program by names of its own", async () => {
    const { options, put } = await newPlace();
    const entry = "{runtime: executable, executable: kit, tools: [a, b]}";
    await put({ "t/manifest.yaml": `version: 1\ntools:\n  kit: ${entry}\n`, "t/kit": "" });
    const toolsets = await Toolsets.open(options, never);
    expect(namesOf(toolsets)).toEqual(["t__a", "t__b"]);
    expect(toolsets.parts[0]!.manifest.tools.get("t__b")?.callable.name).toBe("b");
  });

  test.each([
    ...["env: [SECRET]", "mounts: [{source: /data/x}]", "devices: [/dev/kvm]"],
    "runtime: node, install_scripts: false",
  ])("gets nothing of the host: %s", { tags: "promise-S32" }, async (field) => {
    const { options, put } = await newPlace();
    await put({
      "t/manifest.yaml": `version: 1\ntools:\n  x: {module: m.ts, function: f, ${field}}\n`,
    });
    const toolsets = await Toolsets.open(options, never);
    expect(toolsets.parts).toEqual([]);
    expect(toolsets.problems).toEqual([
      expect.stringMatching(
        /^toolset "t" has a manifest .*t\/manifest\.yaml:3:\d+: tool "x": (env|mounts|devices|install_scripts): allowed only in the worker's own manifest$/,
      ),
    ]);
  });

  test.each([
    ["a", true],
    ["Text_kit-2", true],
    ["a".repeat(50), true],
    ["a".repeat(51), false],
    ["a__b", false],
    ["a_", false],
    ["_a", false],
    ["-a", false],
    ["a.b", false],
    ["é", false],
    ["", false],
  ])("may be called %j: %s", (name, expected) => {
    expect(isToolsetName(name)).toBe(expected);
  });
});

describe("a toolset leaves its directory in no way", { tags: "promise-S32" }, () => {
  /** The problem of one toolset, and that nothing was written outside of the copies. */
  async function problemOf(prepare: (place: Awaited<ReturnType<typeof newPlace>>) => unknown) {
    const place = await newPlace();
    await prepare(place);
    const before = readdirSync(dirname(place.directory)).sort();
    const toolsets = await Toolsets.open(place.options, never);
    expect(toolsets.parts).toEqual([]);
    expect(await readdir(place.copies).catch(() => [])).toEqual([]);
    const after = readdirSync(dirname(place.directory)).filter((name) => name !== "copies");
    expect(after.sort()).toEqual(before);
    expect(toolsets.problems).toHaveLength(1);
    return toolsets.problems[0]!;
  }
  const valid: ZipEntry = { name: "manifest.yaml", text: manifest };
  const zip = (...entries: readonly ZipEntry[]) =>
    problemOf(({ directory }) => writeZip(join(directory, "z.zip"), [valid, ...entries]));

  test.each([
    ["../loot", /invalid relative path: \.\.\/loot/],
    ["a/../../loot", /invalid relative path/],
    ["/tmp/loot", /absolute path/],
    ["C:/loot", /absolute path/],
    ["a\\..\\..\\loot", /invalid characters/],
    ["a//b", /has "a\/\/b", which is no path/],
    ["./a", /which is no path/],
    ["é\nb", /which is no path/],
  ])("by a path of a ZIP file: %j", async (name, problem) => {
    expect(await zip({ name, text: "x" })).toMatch(problem);
  });

  test.each([
    ["a link", 0o120777, /has x, which is a link/],
    ["a link to a directory", 0o120777, /has x, which is a link/],
    ["a named pipe", 0o010644, /has x, which is no file/],
    ["a device", 0o060644, /has x, which is no file/],
  ])("by %s of a ZIP file", async (kind, mode, problem) => {
    const name = kind.endsWith("directory") ? "x/" : "x";
    expect(await zip({ name, text: "/etc", mode })).toMatch(problem);
  });

  test("by a link of a ZIP file that a later entry goes through", async () => {
    const mode = 0o120777;
    expect(await zip({ name: "x", text: "/tmp", mode }, { name: "x/loot" })).toMatch(/is a link/);
  });

  test.each([
    ["a name twice", [{ name: "x" }, { name: "x" }], /has x twice/],
    ["a file as a directory", [{ name: "x" }, { name: "x/y" }], /has x twice/],
    ["the manifest twice", [valid], /has manifest\.yaml twice/],
  ])("by %s in a ZIP file", async (_, entries, problem) => {
    expect(await zip(...entries)).toMatch(problem);
  });

  test("by more bytes than a toolset may have, or than its ZIP file says", async () => {
    const tooMuch = { name: "a", declared: toolsetLimits.bytes };
    expect(await zip(tooMuch)).toMatch(/has files of more than 250 MiB together/);
    expect(await zip({ name: "a", text: "x".repeat(100_000), declared: 10 })).toMatch(
      /is no usable ZIP file: too many bytes in the stream/,
    );
    const { directory } = await newPlace();
    const nearlyFull = new ToolsetBudget();
    nearlyFull.add(toolsetLimits.bytes - 10);
    const writer = new SnapshotWriter(directory, nearlyFull);
    const chunks = ["12345", "67890", "1"].map((text) => Buffer.from(text));
    await expect(writer.file("a", false, Readable.from(chunks))).rejects.toThrow(/250 MiB/);
    expect(await readFile(join(directory, "a"), "utf8")).toBe("1234567890");
  });

  test("by more entries than a toolset may have", { tags: "full" }, async () => {
    const many = Array.from({ length: toolsetLimits.entries }, (_, i) => ({ name: `x${i}` }));
    expect(await zip(...many)).toMatch(/has more than 10000 files and directories/);
    expect(await zip({ name: `${"a/".repeat(toolsetLimits.levels)}x` })).toMatch(/32 levels/);
  });

  test("by directories that its entries only imply", () => {
    const budget = new ToolsetBudget();
    for (let i = 0; i < toolsetLimits.entries; i++) budget.entry(`${i}`);
    expect(() => budget.entry("one")).toThrow(/more than 10000/);
  });

  test("by a ZIP file that is too large, or is none", async () => {
    const problem = await problemOf(async ({ directory }) => {
      await writeFile(join(directory, "z.zip"), Buffer.alloc(toolsetLimits.archiveBytes + 1));
    });
    expect(problem).toBe('toolset "z" is larger than 50 MiB');
    expect(await problemOf(({ put }) => put({ "z.zip": "no archive" }))).toMatch(
      /^toolset "z" is no usable ZIP file: /,
    );
  });

  test.each([
    ["to a file", "a/x", "/etc/hostname"],
    ["to a directory", "a/x", "/etc"],
    ["within it", "a/x", "manifest.yaml"],
  ])("by a link %s", async (_, path, target) => {
    const problem = await problemOf(async ({ directory, put }) => {
      await put({ "a/manifest.yaml": manifest });
      await symlink(target, join(directory, path));
    });
    expect(problem).toBe('toolset "a" has x, which is a link');
  });

  test("by being a link, a link as a ZIP file, or a directory that is called one", async () => {
    const outside = await mkdtemp(join(tmpdir(), "str-outside-"));
    onTestFinished(() => rm(outside, { recursive: true }));
    await writeFile(join(outside, "manifest.yaml"), manifest);
    writeZip(join(outside, "z.zip"), [valid]);
    const linked = (name: string, target: string) =>
      problemOf(({ directory }) => symlink(target, join(directory, name)));
    expect(await linked("a", outside)).toBe('toolset "a" is a link');
    expect(await linked("z.zip", join(outside, "z.zip"))).toBe('toolset "z" is a link');
    expect(await problemOf(({ put }) => put({ "z.zip/manifest.yaml": manifest }))).toMatch(
      /^toolset "z\.zip" has a name that is none/,
    );
  });

  test("by a hard link to the file of another user", async (context) => {
    const { uid } = await lstat("/etc/hostname");
    context.skip(process.getuid?.() !== 0, "needs root: it makes a file of another user");
    expect(uid).toBe(0);
    const problem = await problemOf(async ({ directory, put, copies }) => {
      await put({ "a/manifest.yaml": manifest });
      const others = join(dirname(copies), "others");
      await writeFile(others, "secret");
      await chown(others, 60_001, 60_001);
      await link(others, join(directory, "a/x"));
    });
    expect(problem).toBe('toolset "a" has x, which is a hard link to the file of another user');
  });

  test("by a ZIP file that is a hard link to that of another user", async (context) => {
    context.skip(process.getuid?.() !== 0, "needs root: it makes a file of another user");
    const problem = await problemOf(async ({ directory, copies }) => {
      const others = join(dirname(copies), "others.zip");
      writeZip(others, [valid]);
      await chown(others, 60_001, 60_001);
      await link(others, join(directory, "z.zip"));
    });
    expect(problem).toBe('toolset "z" is a hard link to the file of another user');
  });

  test("by a copy that leaves too little to others, which says nothing against the toolset", () => {
    const budget = new ToolsetBudget(10);
    budget.add(10);
    expect(() => budget.add(1)).toThrow(CopyError);
  });

  test("by a manifest that keeps the parser busy", async () => {
    const text = (bytes: number) => `a: ${"[".repeat(bytes - 3)}`;
    const of = (bytes: number) => problemOf(({ put }) => put({ "a/manifest.yaml": text(bytes) }));
    const { manifestBytes } = toolsetLimits;
    expect(await of(manifestBytes)).toMatch(/a\/manifest\.yaml:1:68: nested too deeply$/);
    expect(await of(manifestBytes + 1)).toMatch(
      /has a manifest\.yaml that is larger than \d+ bytes/,
    );
  });
});

describe("toolsets that change", () => {
  /** Toolsets that are followed to the end of the test, and the number of changes so far. */
  async function followed(prepare: (place: Awaited<ReturnType<typeof newPlace>>) => unknown) {
    const place = await newPlace();
    await prepare(place);
    const toolsets = await Toolsets.open(place.options, never);
    const end = new AbortController();
    const changes: string[][] = [];
    const following = toolsets
      .follow(async () => {
        await toolsets.retain([]);
        changes.push(namesOf(toolsets));
      }, end.signal)
      .catch((error: unknown) => {
        if (!end.signal.aborted) throw error;
      });
    onTestFinished(async () => {
      end.abort();
      await following;
    });
    const until = (check: () => void) => vi.waitFor(check, patience);
    return { ...place, toolsets, changes, until };
  }

  test("come, change and go", async () => {
    const { directory, put, toolsets, changes, until } = await followed(({ put: add }) =>
      add({ "a/manifest.yaml": textOf("one") }),
    );
    await put({ "b/manifest.yaml": textOf("two") });
    await until(() => expect(changes.at(-1)).toEqual(["a__one", "b__two"]));
    await put({ "a/manifest.yaml": textOf("three") });
    await until(() => expect(changes.at(-1)).toEqual(["a__three", "b__two"]));
    await rm(join(directory, "b"), { recursive: true });
    await until(() => expect(changes.at(-1)).toEqual(["a__three"]));
    writeZip(join(directory, ".b.zip"), [{ name: "manifest.yaml", text: textOf("four") }]);
    await rename(join(directory, ".b.zip"), join(directory, "b.zip"));
    await until(() => expect(changes.at(-1)).toEqual(["a__three", "b__four"]));
    expect(toolsets.problems).toEqual([]);
  });

  test("keep their last good state beside a broken one", async () => {
    const { put, toolsets, changes, until, lines } = await followed(({ put: add }) =>
      add({ "a/manifest.yaml": textOf("one"), "a/tools.py": "1", "b/manifest.yaml": "tools: [" }),
    );
    expect(namesOf(toolsets)).toEqual(["a__one"]);
    const { revision } = toolsets.parts[0]!;
    await put({ "a/manifest.yaml": "" });
    await until(() => expect(toolsets.problems).toHaveLength(2));
    expect(namesOf(toolsets)).toEqual(["a__one"]);
    {
      using lease = toolsets.lease(partOf(toolsets, "a"))!;
      expect(await readFile(join(lease.directory, "manifest.yaml"), "utf8")).toBe(textOf("one"));
    }
    expect(lines.at(-1)).toMatchObject({ event: "toolset.unusable", toolset: "a", isKept: true });
    await put({ "b/manifest.yaml": textOf("two") });
    await until(() => expect(changes).toEqual([["a__one", "b__two"]]));
    await put({ "a/manifest.yaml": textOf("one") });
    await until(() => expect(toolsets.problems).toEqual([]));
    // The same content again is no change.
    expect(toolsets.parts[0]!.revision).toBe(revision);
    expect(changes).toHaveLength(1);
  });

  test("leave a copy to the call that has it, and remove it after", async () => {
    const { put, toolsets, changes, until, copies } = await followed(({ put: add }) =>
      add({ "a/manifest.yaml": manifest, "a/tools.py": "old" }),
    );
    const lease = toolsets.lease(partOf(toolsets, "a"))!;
    await put({ "a/tools.py": "new" });
    await until(() => expect(changes).toHaveLength(1));
    expect(await readFile(join(lease.directory, "tools.py"), "utf8")).toBe("old");
    expect(await readdir(copies)).toHaveLength(2);
    {
      using present = toolsets.lease(partOf(toolsets, "a"))!;
      expect(await readFile(join(present.directory, "tools.py"), "utf8")).toBe("new");
    }
    lease[Symbol.dispose]();
    await until(() => expect(readdirSync(copies)).toHaveLength(1));
    expect(() => lstatSync(lease.directory)).toThrow("ENOENT");
  });

  test("are copied by a later poll when the worker could not copy them", async () => {
    const { copies, toolsets, changes, until, lines } = await followed(async (place) => {
      await place.put({ "a/manifest.yaml": textOf("one") });
      await writeFile(place.copies, "in the way");
    });
    const reason = "could not be copied by the worker (EEXIST)";
    expect(toolsets.problems).toEqual([`toolset "a" ${reason}`]);
    await rm(copies);
    await until(() => expect(changes).toEqual([["a__one"]]));
    expect(toolsets.problems).toEqual([]);
    expect(lines.filter((line) => "reason" in line)).toEqual([
      expect.objectContaining({ event: "toolset.unusable", reason, isKept: false }),
    ]);
  });

  test("stay while their directory cannot be read, and have other reasons for nothing", async () => {
    const { directory, toolsets, until } = await followed(({ put: add }) =>
      add({ "a/manifest.yaml": manifest, "readme.txt": "not a toolset", ".b/manifest.yaml": "" }),
    );
    expect(toolsets.problems).toEqual([]);
    await rename(directory, `${directory}-away`);
    await until(() => expect(toolsets.problems).toEqual(["TOOLSETS_DIR does not exist"]));
    expect(namesOf(toolsets)).toEqual(["a__run"]);
    await rename(`${directory}-away`, directory);
    await until(() => expect(toolsets.problems).toEqual([]));
  });

  test("of one name are both left out", async () => {
    const { directory, options, put } = await newPlace();
    await put({ "a/manifest.yaml": manifest });
    writeZip(join(directory, "a.zip"), [{ name: "manifest.yaml", text: manifest }]);
    const toolsets = await Toolsets.open(options, never);
    expect(toolsets.problems).toEqual(['toolset "a" is there twice, as directory and ZIP file']);
  });
});
