/**
 * The guides for authors begin with a tool, its manifest entry, its test and the commands that run
 * them. They work as written, in a directory that has nothing but this checkout's program.
 *
 * @module-tag full
 */
import { describe, expect, test } from "vitest";
import { blocksOf, comparable, newHome, readGuide, writeBlock } from "./guide.ts";

const shownResults = { "python-tool": 2, "typescript-tool": 2, "tool-in-any-language": 1 };

describe.for(Object.entries(shownResults))("write-a-%s.md", ([name, results]) => {
  test("begins with a tool that runs, and a test of it that passes", async () => {
    const [beginning = ""] = readGuide(`write-a-${name}`).split("\n## ");
    const home = await newHome();
    let said: string | undefined;
    const compared: string[] = [];
    for (const { language, text, path } of blocksOf(beginning)) {
      if (path !== undefined) {
        await writeBlock(home, path, text);
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
  const guide = readGuide("write-a-python-tool");
  const [, command = "", shown = ""] =
    /`(harness tool describe [^`]*)` shows it:\n\n```\n([^]*?)^```$/m.exec(guide)!;
  const [, file = "", tool = ""] = /(\S+):(\w+)$/.exec(command)!;
  const source = blocksOf(guide).find(({ text }) => text.includes(`def ${tool}(`));
  const home = await newHome();
  await writeBlock(home, file, source!.text);
  const ran = await home.type(command);
  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toBe(shown);
});
