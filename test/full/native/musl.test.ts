/**
 * Workers and templates with musl in place of glibc.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { expectForeignAnswers, foreignWorker } from "../../support/native/foreign-answers.ts";
import { muslHost, replacedNode } from "../../support/native/musl.ts";
import { programEnvironment } from "../../support/workers/program-environment.ts";

const root = join(import.meta.dirname, "../../..");
/** musl; glibc is "libc.so.6". */
const library = "libc.so";
const workerSeconds = 60;

/** The tests of templates, which are run once more. */
const templateTests = [
  "test/integration/node-runner/idle/template.test.ts",
  "test/integration/sandbox/template.test.ts",
  "test/security/template.test.ts",
];
/** Those whose tools need OpenSSL and SQLite, which the Python for musl lacks. */
const untested = /refused every system call of the list|has no two of [15]0 children/;

const run = (command: readonly string[]) =>
  promisify(execFile)(command[0] ?? "", command.slice(1), {
    cwd: root,
    env: programEnvironment(),
    maxBuffer: 2 ** 26,
  });

// The first one may have to build a Python.
describe("with musl", { timeout: 1_800_000 }, () => {
  test.for([
    ["Node", "node", "x64"],
    ["Python", "python", "x86_64"],
  ] as const)("a worker calls tools of %s in templates", async ([, language, machine], context) => {
    const host = await muslHost(context);
    const worker = [replacedNode, foreignWorker, language, String(workerSeconds)];
    const { stdout } = await run([...host, ...worker]);
    expectForeignAnswers(stdout, machine, library);
  });

  test("the tests of templates pass", async (context) => {
    const host = await muslHost(context);
    const vitest = 'exec "$OWN_NODE" node_modules/vitest/vitest.mjs "$@"';
    const chosen = ["--project", "system", "--testNamePattern", `^(?!.*(?:${untested.source}))`];
    const inside = ["/bin/sh", "-c", vitest, "sh", "run", ...chosen, ...templateTests];
    const { stdout } = await run([...host, ...inside]);
    expect(stdout).toMatch(/^[1-9]\d+ passed, 0 failed/m);
  });
});
