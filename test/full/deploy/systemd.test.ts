/**
 * The unit of deploy/systemd/ by systemd's own tools, and sandboxes under its restrictions, without
 * systemd as the first process of this machine.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { checkoutInside, nodeInside } from "../../support/containers/oci-bundle.ts";
import { OciRuntime } from "../../support/containers/oci-runtime.ts";
import { directives, missingDirectives, runAsUnit } from "../../support/deploy/unit-mounts.ts";
import { isRoot } from "../../support/is-root.ts";
import { slowPlace } from "../../support/sandboxes/quick-place.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");
const unit = readFileSync(join(root, "deploy/systemd/str-worker.service"), "utf8");
const analyzer = "/usr/bin/systemd-analyze";

/** Output and errors of `systemd-analyze`, without which the test is skipped. */
async function analyze(
  context: TestContext,
  ...argv: readonly string[]
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  context.skip(!existsSync(analyzer), "needs systemd-analyze");
  return run(analyzer, argv, { env: { ...process.env, SYSTEMD_PAGER: "" } });
}

/** The unit as a file, with these changes. */
async function unitFile(...changes: readonly (readonly [RegExp, string])[]): Promise<string> {
  const directory = await mkdtemp(join(slowPlace, "str-test-unit-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, "str-worker.service");
  const text = changes.reduce((result, [from, to]) => result.replace(from, to), unit);
  await writeFile(file, text);
  return file;
}

/** Every system call of groups and names as `SystemCallFilter=` takes them. */
async function systemCalls(context: TestContext, list: readonly string[]): Promise<Set<string>> {
  const calls = new Set<string>();
  for (const name of list) {
    if (!name.startsWith("@")) calls.add(name);
    else {
      const { stdout } = await analyze(context, "syscall-filter", name);
      const lines = stdout.split("\n").slice(1);
      const members = lines.map((line) => line.trim()).filter((line) => /^[@a-z]/.test(line));
      for (const call of await systemCalls(context, members)) calls.add(call);
    }
  }
  return calls;
}

const existing = [/^ExecStart=\S+ \S+/m, "ExecStart=/bin/true"] as const;

describe("the unit", () => {
  test("is understood by systemd, every line of it", async (context) => {
    const verify = async (file: string) => (await analyze(context, "verify", file)).stderr;
    expect(await verify(await unitFile(existing))).not.toContain("str-worker.service");
    const misspelled = [/^ProtectHome=/m, "ProtectHouse="] as const;
    expect(await verify(await unitFile(existing, misspelled))).toContain("ProtectHouse");
  });

  test("has the exposure that docs/systemd.md names, with its systemd", async (context) => {
    const page = await readFile(join(root, "docs/systemd.md"), "utf8");
    const [, version, exposure] = /of systemd (\d+)\s+gives.*?\*\*([\d.]+) \(/s.exec(page)!;
    const { stdout: own } = await analyze(context, "--version");
    context.skip(!own.startsWith(`systemd ${version} `), `needs systemd ${version}`);
    const { stdout } = await analyze(context, "security", "--offline=yes", await unitFile());
    expect(/exposure level for str-worker.service: ([\d.]+)/.exec(stdout)![1]).toBe(exposure);
  });
});

describe("sandboxes are made", () => {
  test("with the system calls that the unit allows", async (context) => {
    const [, filter = ""] = /^SystemCallFilter=(.*)$/m.exec(unit)!;
    const allowed = await systemCalls(context, ["@default", ...filter.split(" ")]);
    interface Profile {
      readonly syscalls: readonly { readonly names: readonly string[] }[];
    }
    const profile = JSON.parse(
      await readFile(join(root, "deploy/seccomp.json"), "utf8"),
    ) as Profile;
    const refusedCalls = profile.syscalls
      .flatMap(({ names }) => names)
      .filter((name) => !allowed.has(name));
    const runtime = await OciRuntime.open(context);
    const doctor = [nodeInside, `${checkoutInside}/bin/str-worker.mjs`, "doctor"];
    const end = await runtime.run({ uid: 1000, refusedCalls }, doctor);
    expect(end).toMatchObject({ status: 0 });
    expect(end.stdout).toMatch(/^held +fresh-proc/m);
    expect(end.stdout).toMatch(/^held +egress/m);
  });

  test("in the mounts that the unit makes, and not in others", async (context) => {
    context.skip(!isRoot, "needs root, to mount");
    context.skip(/^\/(var\/)?tmp\//.test(root), "needs a checkout that PrivateTmp does not hide");
    const doctor = [process.execPath, join(root, "bin/str-worker.mjs"), "doctor"];
    expect(unit.split("\n")).toEqual(expect.arrayContaining(Object.keys(directives)));
    const report = await runAsUnit(directives, doctor);
    expect(report).toContain("This host holds what SANDBOX_MINIMUM asks for.");
    expect(report).toMatch(/^held +fresh-proc/m);
    for (const [directive, mounts] of Object.entries(missingDirectives)) {
      expect(unit).not.toContain(`\n${directive}`);
      const other = await runAsUnit({ ...directives, [directive]: mounts }, doctor);
      expect(other).toMatch(/^missing +fresh-proc/m);
    }
  });
});
