/**
 * docs/network.md begins with a tool and commands, which print what it shows. The host that the
 * tool asks is a server of the test.
 *
 * @module-tag full
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
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
const strWorker = fileURLToPath(new URL("../../../bin/str-worker.mjs", import.meta.url));

/** Runs a command where the host is that server. */
const besideGithub = ["unshare", "--net", "--mount", process.execPath, github];

test("the walk of the document on networks prints what it shows", async (context) => {
  context.skip(!isRoot, "needs root to make a network where every address is answered");
  const [, walk = ""] = readGuide("network").split("\n## ");
  const home = await newHome(besideGithub);
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

test(
  "a credential is in no log, audit line, answer or file of a worker",
  { tags: "promise-S37" },
  async (context) => {
    context.skip(!isRoot, "needs root to make a network where every address is answered");
    const [, walk = ""] = readGuide("network").split("\n## ");
    const home = await newHome(besideGithub);
    for (const { text, path } of blocksOf(walk))
      if (path !== undefined) await writeBlock(home, path, text);
    const { exitCode, stdout } = await home.type(`
mkdir temporary
export TMPDIR=$PWD/temporary CREDENTIAL_SOURCES=env:GITHUB_TOKEN AUDIT_LOG=$PWD/audit.log
export SAM_NAMESPACE=harness DEV_BROKER_HOST=127.0.0.1
export MANIFEST_PATH=$PWD/tools/manifest.yaml TOOLS_PYTHON_DIR=$PWD/tools/python
export SANDBOX_WORK_DIR=$TMPDIR/work ARTIFACT_SERVICE_TYPE=filesystem ARTIFACT_BASE_PATH=$TMPDIR
LOG_LEVEL=trace ${strWorker} > log 2>&1 & worker=$!
harness invoke --tool rate_limit --json > answer
kill $worker; wait $worker
echo "$GITHUB_TOKEN" > control
grep --recursive --files-with-matches --fixed-strings --text "$GITHUB_TOKEN" . > found`);
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 });
    const read = (name: string): Promise<string> => readFile(join(home.path, name), "utf8");
    expect(await read("found")).toBe("./control\n");
    // The upstream had it, and each of these files what it should have.
    expect(await read("answer")).toContain('"an_hour":5000');
    expect(await read("log")).toContain("rate_limit");
    expect(await read("audit.log")).toContain('"name":"api.github.com"');
  },
);
