/**
 * Interpreters outside /usr, and the packages that tools declare.
 */
import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Rig, reachableDirectory, startRig } from "../../../support/workers/rig.ts";

const run = promisify(execFile);

describe("a virtual environment", () => {
  let base: string;
  let rig: Rig;

  beforeAll(async () => {
    base = await reachableDirectory();
    const venv = join(base, "private", "venv");
    await mkdir(join(base, "private"));
    await run("/usr/bin/python3", ["-m", "venv", "--without-pip", venv]);
    const [version] = await readdir(join(venv, "lib"));
    const packages = join(venv, "lib", version!, "site-packages");
    await writeFile(join(packages, "only_here.py"), 'NAME = "installed here only"\n');
    await mkdir(join(packages, "only_here-1.4.dist-info"));
    await writeFile(
      join(packages, "only_here-1.4.dist-info/METADATA"),
      "Metadata-Version: 2.1\nName: only-here\nVersion: 1.4\n",
    );
    // As a home directory is.
    await chmod(join(base, "private"), 0o700);
    rig = await startRig({
      tools: {
        uses: { ...tool, version: ">=1.0,<2" },
        fits: tool,
        too_old: { ...tool, version: ">=2.0" },
      },
      files,
      environment: { SANDBOX_PYTHON_BIN: join(venv, "bin/python") },
    });
  });
  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
  });

  const files = {
    "uses_package.py":
      "import sys\nimport only_here\n\n\ndef run():\n    return {'name': only_here.NAME, 'prefix': sys.prefix}\n",
  };
  const tool = { module: "uses_package", function: "run", package: "only-here" };

  test("is bound by itself, with its packages, also below a private directory", async () => {
    expect(await rig.call("uses")).toMatchObject({
      kind: "success",
      toolResult: { name: "installed here only", prefix: join(base, "private/venv") },
    });
  });

  test("decides which tools are served: a version that does not fit is not", async () => {
    expect(await rig.call("fits")).toMatchObject({ kind: "success" });
    expect(await rig.call("too_old")).toMatchObject({ code: "TOOL_NOT_AVAILABLE" });
    expect(rig.logLines.join("\n")).toMatch(/too_old.*version 1\.4.*>=2\.0/);
  });
});
