/**
 * Calls of other tools by a Python tool: the suite of test_tools.py.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { python, runnerDir } from "../run-tool.ts";

test("tools, awaited and not, as test_tools.py has it", async () => {
  const child = spawn(python, ["-B", "-m", "unittest", "test_tools"], {
    cwd: import.meta.dirname,
    env: { PATH: "/usr/bin:/bin", PYTHONPATH: runnerDir },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [report, [status]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect(report).toMatch(/^Ran [1-9]\d* tests in/m);
  expect(status, report).toBe(0);
});
