/**
 * Templates of the next Node, from npm: their tests once more.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { runNodeBy } from "../../support/sandboxes/template-host.ts";

const nextMajor = 26;

const run = promisify(execFile);
const directory = await mkdtemp(join(tmpdir(), "next-node-"));
afterAll(() => rm(directory, { recursive: true }));
// Sandboxes reach it as another user.
await chmod(directory, 0o755);
const program = join(directory, "node_modules/node/bin/node");
const install = ["install", "--prefix", directory, "--no-audit", "--no-fund"];
const problem = await run("npm", [...install, `node@${nextMajor}`]).then(
  () => undefined,
  (error: Error) => error.message,
);

test("the next Node is the one that is installed", async (context) => {
  context.skip(problem !== undefined, `npm cannot install Node ${nextMajor}: ${problem}`);
  const { stdout } = await run(program, ["--version"]);
  expect(stdout).toMatch(new RegExp(`^v${nextMajor}\\.`));
});

if (problem === undefined) {
  runNodeBy(program);
  await import("../../integration/node-runner/idle/template.test.ts");
}
