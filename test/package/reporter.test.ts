/**
 * The last line of a test run is the plain count, and nothing that fails a run is missing from it.
 *
 * @module-tag full
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ownNode, root, run } from "./processes.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "reporter-"));
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
  writeFileSync(
    join(directory, "vitest.config.ts"),
    `import { PlainCountReporter } from ${JSON.stringify(join(root, "test", "reporter.ts"))};
     const tags = [{ name: "full" }, { name: "of-two" }];
     export default { test: { reporters: ["default", new PlainCountReporter()], tags } };`,
  );
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

/** Runs vitest over the given test files; returns its exit code and its lines. */
async function runTests(
  files: Record<string, string>,
  ...args: string[]
): Promise<{ status: number | null; lines: readonly string[] }> {
  const prelude = `import { afterAll, beforeAll, describe, expect, test } from "vitest";\n`;
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), prelude + text);
  }
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const { status, stdout } = await run(ownNode, [vitest, "run", ...args], { cwd: directory });
  return { status, lines: stdout.trimEnd().split("\n") };
}

test("a run that passes ends with its counts", async () => {
  const { status, lines } = await runTests({
    "a.test.ts": `test("one", () => {}); test("two", () => {});`,
    "b.test.ts": `describe("inside", () => { test("three", () => {}); });`,
  });
  expect(lines.at(-1)).toBe("3 passed, 0 failed, 0 skipped");
  expect(status).toBe(0);
});

test.for([
  ["!full", ["one"]],
  ["full", ["two"]],
  ["of-two", ["two"]],
] as const)("with %s, tests that a tag leaves to the other run are not counted", async (row) => {
  const [filter, expected] = row;
  const { lines } = await runTests(
    { "a.test.ts": `test("one", () => {}); test("two", { tags: ["full", "of-two"] }, () => {});` },
    "--tagsFilter",
    filter,
  );
  const slowest = lines.slice(lines.indexOf("slowest tests:") + 1, -1);
  expect(slowest.map((line) => line.split(": ").at(-1))).toEqual(expected);
  expect(lines.at(-1)).toBe("1 passed, 0 failed, 0 skipped");
});

test("a failed test is counted", async () => {
  const { status, lines } = await runTests({
    "a.test.ts": `test("one", () => {}); test("two", () => { expect(1).toBe(2); });`,
  });
  expect(lines.at(-1)).toBe("1 passed, 1 failed, 0 skipped");
  expect(status).toBe(1);
});

test("skipped tests are listed with their reasons", async () => {
  const { status, lines } = await runTests({
    "a.test.ts": `
      test("one", ({ skip }) => skip("no cgroups here"));
      test("two", ({ skip }) => skip("no cgroups here"));
      test.skip("three", () => {});
      test("four", () => {});`,
  });
  expect(lines.slice(-3)).toEqual([
    "skipped 2 in a.test.ts: no cgroups here",
    "skipped 1 in a.test.ts: no reason given",
    "1 passed, 0 failed, 3 skipped",
  ]);
  expect(status).toBe(0);
});

test("a file that does not load counts as failed", async () => {
  const { status, lines } = await runTests({
    "a.test.ts": `test("one", () => {});`,
    "b.test.ts": `import "./absent.ts"; test("two", () => {});`,
    "c.test.ts": `expect(1).toBe(1);`,
  });
  expect(lines.at(-1)).toBe("1 passed, 2 failed, 0 skipped");
  expect(status).toBe(1);
});

test("a hook that throws counts as failed, and the tests that it kept from running say so", async () => {
  const { status, lines } = await runTests({
    "a.test.ts": `
      describe("inside", () => {
        beforeAll(() => { throw new Error("no"); });
        test("one", () => {});
      });`,
  });
  expect(lines.slice(-2)).toEqual([
    "skipped 1 in a.test.ts: its suite failed",
    "0 passed, 1 failed, 1 skipped",
  ]);
  expect(status).toBe(1);
});

test("an error that no test caught counts as failed", async () => {
  const { status, lines } = await runTests({
    "a.test.ts": `
      test("one", () => { void Promise.reject(new Error("lost")); });
      test("two", () => new Promise((resolve) => setTimeout(resolve, 50)));`,
  });
  expect(lines.at(-1)).toBe("2 passed, 1 failed, 0 skipped");
  expect(status).toBe(1);
});

test("a worker that dies counts as failed", async () => {
  const { status, lines } = await runTests({
    "a.test.ts": `test("one", () => { process.kill(process.pid, "SIGKILL"); });`,
    "b.test.ts": `test("two", () => {});`,
  });
  expect(lines.at(-1)).toMatch(/^1 passed, [1-9] failed, 0 skipped$/);
  expect(status).toBe(1);
});

test("a run without tests is a failed run", async () => {
  const { status, lines } = await runTests({ "a.test.ts": `test("one", () => {});` }, "absent");
  expect(lines.at(-1)).toBe("0 passed, 1 failed, 0 skipped");
  expect(status).toBe(1);
});
