/**
 * Guides of docs/: their files, commands and outputs, in a directory that has nothing but this
 * checkout's program.
 */
import { readFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { type CliResult, runCliProcess } from "../cli-process.ts";

const checkout = join(import.meta.dirname, "../../../..");

/** A fenced block, with the path of the file that the text before it says it is. */
export interface Block {
  readonly language: string;
  readonly text: string;
  readonly path: string | undefined;
}

/** The fenced blocks of a text. */
export function blocksOf(text: string): readonly Block[] {
  return [...text.matchAll(/([^]*?)^```(\w*)\n([^]*?)^```$/gm)].map(
    ([, said, language, block]) => ({
      language: language!,
      text: block!,
      path: /`(tools\/[\w./-]+)`:\s*$/.exec(said!)?.[1],
    }),
  );
}

/** The text of a document. */
export const readGuide = (name: string): string =>
  readFileSync(join(checkout, "docs", `${name}.md`), "utf8");

/** A directory of a test, and what a shell says there, as one text. */
export interface Home {
  readonly path: string;
  readonly type: (command: string) => Promise<CliResult>;
}

/**
 * A new directory with the command `harness`; it goes with the test.
 *
 * @param prefix command that runs the shell
 */
export async function newHome(prefix: readonly string[] = []): Promise<Home> {
  const home = await createPassableDirectory("str-guide-test-");
  onTestFinished(() => home[Symbol.asyncDispose]());
  await mkdir(join(home.path, "bin"));
  await symlink(join(checkout, "bin/harness.mjs"), join(home.path, "bin/harness"));
  const environment = { PATH: `${join(home.path, "bin")}:${process.env["PATH"]}` };
  return {
    path: home.path,
    type: (command) =>
      runCliProcess(["-ec", `exec 2>&1\n${command}`], environment, {
        cwd: home.path,
        command: [...prefix, "sh"],
      }),
  };
}

/** Writes a file of a guide. */
export async function writeBlock({ path: home }: Home, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(home, path)), { recursive: true });
  await writeFile(join(home, path), text);
}

/** The lines in any order, since they come from two streams, and without durations. */
export const comparable = (text: string): readonly string[] =>
  text
    .trimEnd()
    .replaceAll(/\b\d+ ms\b/g, "N ms")
    .split("\n")
    .sort();
