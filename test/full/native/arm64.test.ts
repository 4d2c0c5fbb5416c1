/**
 * Workers and templates on arm64, in a machine of QEMU's.
 *
 * @module-tag full
 */
import { expect, test } from "vitest";
import { machineNodes, runOnArm64 } from "../../support/native/arm64.ts";
import { expectForeignAnswers } from "../../support/native/foreign-answers.ts";

const program = "/test/support/native/foreign-worker.ts";
/** By the clock of the machine. */
const workerSeconds = "300";
const testTimeoutMs = 1_800_000;
const libraries = { glibc: "libc.so.6", musl: "libc.so" } as const;

test(
  "on arm64 a worker calls tools of Python and, with glibc and musl, of Node in templates",
  { timeout: testTimeoutMs },
  async (context) => {
    const run = (node: string, language: string) => [node, program, language, workerSeconds];
    const answers = await runOnArm64(context, {
      doctor: [machineNodes.glibc, "/worker/main.ts", "doctor", "--json"],
      python: run(machineNodes.glibc, "python"),
      node: run(machineNodes.glibc, "node"),
      "node-musl": run(machineNodes.musl, "node"),
    });
    const report = JSON.parse(answers.get("doctor") ?? "") as { checks: { name: string }[] };
    const held = report.checks.filter((check) => ["seccomp", "fresh-proc"].includes(check.name));
    expect(report).toMatchObject({ ok: true });
    expect(held).toMatchObject([{ state: "held" }, { state: "held" }]);
    expectForeignAnswers(answers.get("python") ?? "", "aarch64", libraries.glibc);
    expectForeignAnswers(answers.get("node") ?? "", "arm64", libraries.glibc);
    expectForeignAnswers(answers.get("node-musl") ?? "", "arm64", libraries.musl);
  },
);
