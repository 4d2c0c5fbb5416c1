/**
 * The original's own packages, from PyPI, do what was recorded of them, which is what the stand-ins
 * are tested with.
 *
 * @module-tag full
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { fixtures, python } from "../../integration/tool-runner/run-tool.ts";

/** Milliseconds. The largest of the packages has 11 MB. */
const installMs = 300_000;

const directory = mkdtempSync(join(tmpdir(), "original-classes-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** Installs into the directory. Returns why it could not, in pip's last line. */
function install(...what: readonly string[]): string | undefined {
  const options = ["install", "--quiet", "--disable-pip-version-check", "--target", directory];
  const { status, stderr, error } = spawnSync(python, ["-m", "pip", ...options, ...what], {
    encoding: "utf8",
    timeout: installMs / 2,
  });
  return status === 0 ? undefined : (error?.message ?? stderr.trim().split("\n").at(-1));
}

test(
  "results are what was recorded",
  (context) => {
    // Their other dependencies are some 200 MB, which the modules of results do not import.
    const problem =
      install("--no-deps", "solace-agent-mesh==1.28.8", "sam-tool-sdk==0.1.3") ??
      install("pydantic==2.12.5");
    context.skip(problem !== undefined, `the packages cannot be installed: ${problem}`);
    const { stdout, stderr } = spawnSync(
      python,
      ["-B", "-W", "ignore", join(fixtures, "result_cases.py"), directory],
      { encoding: "utf8", env: { PYTHONPATH: directory } },
    );
    expect(stderr).toBe("");
    const recorded = readFileSync(join(fixtures, "../golden/result-cases.json"), "utf8");
    expect(JSON.parse(stdout)).toEqual(JSON.parse(recorded));
  },
  installMs,
);
