/**
 * docs/network.md begins with a tool and commands, which print what it shows. The host that the
 * tool asks is a server of the test.
 *
 * @module-tag full
 */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import {
  blocksOf,
  comparable,
  newHome,
  readGuide,
  writeBlock,
} from "../../integration/harness/guides/guide.ts";
import { isRoot } from "../../support/is-root.ts";

const github = fileURLToPath(new URL("../../support/egress/github.ts", import.meta.url));

test("the walk of the document on networks prints what it shows", async (context) => {
  context.skip(!isRoot, "needs root to make a network where every address is answered");
  const [, walk = ""] = readGuide("network").split("\n## ");
  const home = await newHome(["unshare", "--net", "--mount", process.execPath, github]);
  let printed = "";
  const commands: string[] = [];
  for (const { language, text, path } of blocksOf(walk)) {
    if (path !== undefined) await writeBlock(home, path, text);
    else if (language === "sh") {
      commands.push(text);
      const { stdout } = await home.type(text);
      // The traceback is left out.
      printed = stdout.replaceAll(/^stderr: .*\n/gm, "");
    } else if (language === "json") {
      const [answer = ""] = /^\{.*/m.exec(printed) ?? [];
      expect(JSON.parse(answer)).toMatchObject(JSON.parse(text) as object);
    } else expect(comparable(printed)).toEqual(comparable(text));
  }
  expect(commands).toHaveLength(6);
});
