/**
 * The guides for authors begin with commands that do what they say, in a directory that has nothing
 * but this checkout's program.
 *
 * @module-tag full
 */
import { readFileSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { runCliProcess } from "./cli-process.ts";

const checkout = join(import.meta.dirname, "../../..");

test.for(["python", "typescript"])("write-a-%s-tool.md", async (language) => {
  const guide = readFileSync(join(checkout, "docs", `write-a-${language}-tool.md`), "utf8");
  const [commands = "", entry = ""] = ["sh", "yaml"].map(
    (name) => new RegExp(`^\`\`\`${name}\n([^]*?)^\`\`\`$`, "m").exec(guide)?.[1],
  );
  const home = await createPassableDirectory("str-guide-test-");
  onTestFinished(() => home[Symbol.asyncDispose]());
  await mkdir(join(home.path, "bin"));
  await symlink(join(checkout, "bin/harness.mjs"), join(home.path, "bin/harness.mjs"));

  const ran = await runCliProcess(["-ec", commands], {}, { cwd: home.path, command: ["sh"] });
  expect({ exitCode: ran.exitCode, stderr: ran.stderr }).toEqual({
    exitCode: 0,
    stderr: expect.stringContaining("status: Counting...") as string,
  });
  expect(ran.stdout).toContain("2 passed, 0 failed, 0 skipped\n");
  expect(ran.stdout).toContain('"count": 3');
  const manifest = await readFile(join(home.path, "tools/manifest.yaml"), "utf8");
  for (const line of entry.trimEnd().split("\n")) expect(manifest).toContain(line);
});
