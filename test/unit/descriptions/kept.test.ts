/**
 * The directory of descriptions.
 */
import { chmod, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { readDescription } from "../../../worker/descriptions/answer.ts";
import { KeptDescriptions, maxKept } from "../../../worker/descriptions/kept.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

const described = readDescription({
  description: "Finds things.",
  parameters: { type: "object" },
  artifact_parameters: { file: { is_list: false, is_optional: true } },
});
let directory = "";
let lines: string[] = [];

function open(): KeptDescriptions {
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  return new KeptDescriptions(directory, createLogger("debug", log));
}

beforeEach(async () => {
  const base = await mkdtemp(join(tmpdir(), "str-kept-"));
  onTestFinished(() => rm(base, { recursive: true }));
  directory = join(base, "descriptions");
  lines = [];
});

describe("a kept description", () => {
  test("is found by its facts, also by another process", async () => {
    await open().keep(["a", "b"], described);
    expect(await open().find(["a", "b"])).toEqual(described);
    expect(await open().find(["a", "c"])).toBeUndefined();
    expect(await open().find(["ab"])).toBeUndefined();
    expect(lines).toEqual([]);
  });

  test("that is damaged counts as absent", async () => {
    await open().keep(["a"], described);
    const [name = ""] = await readdir(directory);
    for (const text of ["{", "[]", "x".repeat(1024 * 1024)]) {
      await writeFile(join(directory, name), text);
      expect(await open().find(["a"])).toBeUndefined();
    }
  });

  test(
    "is not taken from, nor put into, a directory that others can write to",
    { tags: "promise-S29" },
    async () => {
      await open().keep(["a"], described);
      await chmod(directory, 0o777);
      expect(await open().find(["a"])).toBeUndefined();
      await open().keep(["b"], described);
      expect(await readdir(directory)).toHaveLength(1);
      expect(lines.join("")).toContain('"event":"description.not_kept"');
    },
  );

  test("goes when there are too many, the oldest first", async () => {
    await mkdir(directory, { mode: 0o700 });
    await Promise.all(
      Array.from({ length: maxKept }, async (_, index) => {
        const path = join(directory, `${index}`);
        await writeFile(path, "");
        await utimes(path, index + 1, index + 1);
      }),
    );
    await open().keep(["a"], described);
    const names = await readdir(directory);
    expect(names).toHaveLength(maxKept);
    expect(names).not.toContain("0");
    expect(await open().find(["a"])).toEqual(described);
  });
});
