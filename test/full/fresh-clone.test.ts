/**
 * What is committed is complete: in a fresh clone that only its owner may enter, with a fresh home,
 * it is installed, built and packed, and its commands answer.
 *
 * @module-tag full
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root, runWell, userEnvironment, type Ending } from "../package/processes.ts";

/** For a command that installs everything, while the other slow tests have the cores. */
const timeoutMs = 9 * 60_000;

let base: string;

beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), "fresh-clone-"));
  for (const directory of ["home", "tmp"]) mkdirSync(join(base, directory), { mode: 0o700 });
  await runWell("git", ["clone", "--quiet", root, join(base, "clone")], { cwd: base });
  chmodSync(join(base, "clone"), 0o700);
});

afterAll(() => {
  rmSync(base, { recursive: true });
});

const npm = (...args: readonly string[]): Promise<Ending> =>
  runWell("npm", args, {
    cwd: join(base, "clone"),
    env: userEnvironment({ HOME: join(base, "home"), TMPDIR: join(base, "tmp") }),
    timeoutMs,
  });

test("npm pack, as the first command, installs what is missing, builds and packs", async () => {
  await npm("pack");
  expect(readdirSync(join(base, "clone")).filter((file) => file.endsWith(".tgz"))).toHaveLength(1);
});

test("the commands answer", async () => {
  for (const command of ["str-worker", "harness"]) {
    const script = join(base, "clone", "bin", `${command}.mjs`);
    expect((await runWell("node", [script, "--help"], { cwd: base })).stdout).toContain(command);
  }
});
