/**
 * `PACKAGE_POLICY=check`: the packages that an interpreter, or a directory of Node tools, has.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingPackage } from "../../../worker/environments/installed-check.ts";
import { EnvironmentError, type Interpreter } from "../../../worker/environments/environments.ts";
import type { PackageFields } from "../../../worker/manifest/fields/packages.ts";
import {
  python as systemPython,
  toolWith,
  writeFiles,
} from "../../support/packages/worker-environments.ts";

const run = promisify(execFile);
const never = new AbortController().signal;
let base: string;
let interpreter: Interpreter;

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "str-check-"));
  const venv = join(base, "venv");
  await run(systemPython, ["-m", "venv", "--without-pip", venv]);
  const [version] = await readdir(join(venv, "lib"));
  const packages = join(venv, "lib", version!, "site-packages");
  for (const [name, packageVersion] of [
    ["only_here", "1.4"],
    ["dotted.name", "2.0"],
    ["early_bird", "3.0rc1"],
  ]) {
    const information = join(packages, `${name}-${packageVersion}.dist-info`);
    await mkdir(information);
    await writeFile(
      join(information, "METADATA"),
      `Metadata-Version: 2.1\nName: ${name}\nVersion: ${packageVersion}\n`,
    );
  }
  await writeFiles(packages, {
    "bare_module.py": "",
    "loud_package/__init__.py": "raise SystemExit('imported')\n",
  });
  await writeFiles(base, {
    "requirements.txt": "only-here>=1 # here\nmissing==1\n",
    "uv.lock": "",
    "node_modules/broken/package.json": "{",
    "node_modules/zod/package.json": '{"version": "4.1.0"}',
    "a/node_modules/@scope/one/package.json": '{"version": "1.0.0-rc.1"}',
  });
  const program = join(venv, "bin/python");
  interpreter = { executable: program, program, mounts: [], identity: "any" };
});
afterAll(() => rm(base, { recursive: true, force: true }));

function missing(
  fields: PackageFields,
  runtime: "python" | "node" = "python",
  module = "a/tool.ts",
): Promise<string | undefined> {
  const tool = { ...toolWith(fields, runtime), module };
  return missingPackage(
    tool,
    tool.packages!,
    { toolsDir: base, interpreterOf: async () => interpreter },
    never,
  );
}

describe("a Python tool", () => {
  test.each([
    ["only_here", undefined],
    ["only-here", ">=1.0,<2.0"],
    ["Only.Here", "==1.4"],
    ["dotted.name", "~=2.0"],
    ["early_bird", ">=2.0"],
    ["bare_module", undefined],
    ["bare-module", ">=1.0"],
    ["loud_package", undefined],
    ["json", undefined],
  ])("has its package: %s %s", async (name, version) => {
    expect(await missing({ package: name, version })).toBeUndefined();
  });

  const wrong = (name: string, version: string, wanted: string): string =>
    `package "${name}" is installed in version ${version}, the manifest wants ${wanted}`;
  test.each([
    ["only_here", ">=2.0", wrong("only-here", "1.4", ">=2.0")],
    ["only_here", "<1.4", wrong("only-here", "1.4", "<1.4")],
    ["early_bird", ">=3.0", wrong("early-bird", "3.0rc1", ">=3.0")],
    ["missing", undefined, 'package "missing" is not installed'],
    ["json.missing", undefined, 'package "json-missing" is not installed'],
  ])("lacks %s %s", async (name, version, expected) => {
    expect(await missing({ package: name, version })).toBe(expected);
  });

  test("is checked for all of its requirements", async () => {
    expect(await missing({ requirements: ["json", "only-here>=1", "gone"] })).toBe(
      'package "gone" is not installed',
    );
    expect(await missing({ requirements_file: "requirements.txt" })).toBe(
      'package "missing" is not installed',
    );
    expect(await missing({ lockfile: "uv.lock" })).toContain("only read where PACKAGE_POLICY is");
  });
});

describe("a Node tool", () => {
  test.each([
    [["zod@^4.0.0"], undefined],
    [["zod", "@scope/one@1.x"], undefined],
    [["zod@^5"], 'package "zod" is installed in version 4.1.0, the manifest wants ^5'],
    [["left-pad"], 'package "left-pad" is not installed'],
  ])("finds %j as Node does", async (requirements, expected) => {
    expect(await missing({ requirements }, "node")).toBe(expected);
  });

  test("whose package says no version is refused with its name", async () => {
    const refused = new EnvironmentError('the versions of "broken" cannot be read');
    await expect(missing({ requirements: ["broken"] }, "node")).rejects.toThrow(refused);
  });
});

test("an interpreter that gives no answer is an error with the packages' names", async () => {
  const tool = toolWith({ requirements: ["one", "two"] });
  const interpreterOf = async () => ({ ...interpreter, program: "/bin/false" });
  const asked = missingPackage(tool, tool.packages!, { toolsDir: base, interpreterOf }, never);
  const refused = new EnvironmentError('the versions of "one", "two" cannot be read');
  await expect(asked).rejects.toThrow(refused);
});
