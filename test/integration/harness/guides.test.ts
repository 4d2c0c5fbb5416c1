/**
 * The guides for authors begin with a tool, its manifest entry, its test and the commands that run
 * them. They work as written, in a directory that has nothing but this checkout's program.
 *
 * @module-tag full
 */
import { readFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { type CliResult, runCliProcess } from "./cli-process.ts";

const checkout = join(import.meta.dirname, "../../..");

/** A fenced block, with the path of the file that the text before it says it is. */
interface Block {
  readonly language: string;
  readonly text: string;
  readonly path: string | undefined;
}

function blocksOf(text: string): readonly Block[] {
  return [...text.matchAll(/([^]*?)^```(\w*)\n([^]*?)^```$/gm)].map(
    ([, said, language, block]) => ({
      language: language!,
      text: block!,
      path: /`(tools\/[\w./-]+)`:\s*$/.exec(said!)?.[1],
    }),
  );
}

const readGuide = (name: string): string =>
  readFileSync(join(checkout, "docs", `write-a-${name}.md`), "utf8");

/** A new directory with the command `harness`, and what a shell says there, as one text. */
async function newHome(): Promise<{
  readonly path: string;
  readonly type: (command: string) => Promise<CliResult>;
}> {
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
        command: ["sh"],
      }),
  };
}

/** The lines in any order, since they come from two streams, and without durations. */
const comparable = (text: string): readonly string[] =>
  text
    .trimEnd()
    .replaceAll(/\b\d+ ms\b/g, "N ms")
    .split("\n")
    .sort();

const shownResults = { "python-tool": 2, "typescript-tool": 2, "tool-in-any-language": 1 };

describe.for(Object.entries(shownResults))("write-a-%s.md", ([name, results]) => {
  test("begins with a tool that runs, and a test of it that passes", async () => {
    const [beginning = ""] = readGuide(name).split("\n## ");
    const home = await newHome();
    let said: string | undefined;
    const compared: string[] = [];
    for (const { language, text, path } of blocksOf(beginning)) {
      if (path !== undefined) {
        await mkdir(dirname(join(home.path, path)), { recursive: true });
        await writeFile(join(home.path, path), text);
      } else if (language === "sh") {
        const ran = await home.type(text);
        expect({ text, exitCode: ran.exitCode, said: ran.stdout }).toMatchObject({ exitCode: 0 });
        said = ran.stdout;
      } else {
        expect(comparable(said!)).toEqual(comparable(text));
        compared.push(text);
      }
    }
    expect(compared).toHaveLength(results);
  });
});

test("write-a-python-tool.md shows what agents are told of its tool", async () => {
  const guide = readGuide("python-tool");
  const [, command = "", shown = ""] =
    /`(harness tool describe [^`]*)` shows it:\n\n```\n([^]*?)^```$/m.exec(guide)!;
  const [, file = "", tool = ""] = /(\S+):(\w+)$/.exec(command)!;
  const source = blocksOf(guide).find(({ text }) => text.includes(`def ${tool}(`));
  const home = await newHome();
  await writeFile(join(home.path, file), source!.text);
  const ran = await home.type(command);
  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toBe(shown);
});
