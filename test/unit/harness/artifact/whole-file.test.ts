import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { writeWholeFile } from "../../../../harness/artifact/whole-file.ts";

const never = new AbortController().signal;

async function newDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "whole-file-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

async function* chunks(...texts: readonly string[]) {
  for (const text of texts) yield Buffer.from(text);
}

describe("a whole file", () => {
  test("has the content, and the mode of ordinary files", async () => {
    const directory = await newDirectory();
    const path = join(directory, "a.txt");
    await writeWholeFile(chunks("first ", "second"), path, { replaces: false }, never);
    expect(await readFile(path, "utf8")).toBe("first second");
    expect((await stat(path)).mode & 0o777).toBe(0o666 & ~process.umask());
    expect(await readdir(directory)).toEqual(["a.txt"]);
  });

  test("takes the place of none, unless it may", async () => {
    const directory = await newDirectory();
    const path = join(directory, "a.txt");
    await writeFile(path, "before");
    const write = (replaces: boolean): Promise<void> =>
      writeWholeFile(chunks("after"), path, { replaces }, never);
    await expect(write(false)).rejects.toMatchObject({ code: "EEXIST" });
    expect(await readFile(path, "utf8")).toBe("before");
    await write(true);
    expect(await readFile(path, "utf8")).toBe("after");
    expect(await readdir(directory)).toEqual(["a.txt"]);
  });

  test("does not appear when its content fails, or the command is interrupted", async () => {
    const directory = await newDirectory();
    const path = join(directory, "a.txt");
    const failing = (async function* () {
      yield* chunks("first");
      throw new Error("cut off");
    })();
    await expect(writeWholeFile(failing, path, { replaces: true }, never)).rejects.toThrow(
      "cut off",
    );
    const interruption = new AbortController();
    const interrupted = (async function* () {
      yield* chunks("first");
      interruption.abort(new Error("Ctrl-C"));
      yield* chunks("second");
    })();
    const write = writeWholeFile(interrupted, path, { replaces: true }, interruption.signal);
    await expect(write).rejects.toThrow();
    expect(await readdir(directory)).toEqual([]);
  });
});
