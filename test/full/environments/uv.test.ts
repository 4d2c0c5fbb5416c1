/**
 * uv, from PyPI, as the installer of Python packages.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, describe, expect, test } from "vitest";
import { sharedBackends, temporaryDirectory } from "../../integration/sandbox/sandbox-host.ts";
import { writeSourceArchive, writeWheel } from "../../support/packages/archives.ts";
import {
  openEnvironments,
  toolWith,
  writeFiles,
} from "../../support/packages/worker-environments.ts";
import { pypiPackages } from "../../support/pypi-packages.ts";

const run = promisify(execFile);
const never = new AbortController().signal;
const backendOf = sharedBackends();

async function place(context: TestContext) {
  const uvBin = join(await pypiPackages(context, ["uv"]), "bin", "uv");
  const backend = await backendOf(context);
  return { uvBin, backend, base: await temporaryDirectory() };
}

describe("uv", () => {
  test("installs from a directory of wheels, and says why it cannot", async (context) => {
    const { uvBin, backend, base } = await place(context);
    writeWheel(join(base, "wheels"), { name: "greeting", version: "1.0" });
    const environment = { UV_NO_INDEX: "1" };
    const settings = { uvBin };
    const { environments, lines } = openEnvironments({ backend, base, environment, settings });
    const tool = toolWith({ package: "greeting" });
    expect(await environments.refuse(tool, never), JSON.stringify(lines)).toBeUndefined();
    const { dir } = environments.installationOf(tool)!;
    expect(await readFile(join(dir, "packages/greeting.py"), "utf8")).toContain("1.0");
    expect(lines.at(-1)).toMatchObject({ installer: "uv" });

    await environments.refuse(toolWith({ package: "greeting", version: ">=2" }), never);
    expect(lines.at(-1)).toMatchObject({ event: "packages.failed", reason: "uv ended with 1" });
    expect(lines.at(-1)!["output"]).toContain("greeting>=2");
  });

  test.for([
    { UV_NO_BUILD: "1" },
    { PIP_ONLY_BINARY: ":all:" },
    { PIP_ONLY_BINARY: "other,curious" },
  ])("runs no code of a source archive with %j", async (variables, context) => {
    const { uvBin, backend, base } = await place(context);
    const links = join(base, "links");
    writeSourceArchive(links, "curious", 'import sys\nprint("BUILT", file=sys.stderr)');
    const outputOf = async (more: Record<string, string>): Promise<unknown> => {
      const environment = { UV_NO_INDEX: "1", PIP_FIND_LINKS: links, ...more };
      const options = { backend, base, environment, settings: { uvBin } };
      const { environments, lines } = openEnvironments(options);
      expect(await environments.refuse(toolWith({ package: "curious" }), never)).toBeDefined();
      return lines.at(-1)!["output"];
    };
    expect(await outputOf({})).toContain("BUILT");
    const output = await outputOf(variables);
    expect(output).toContain("curious");
    expect(output).not.toContain("BUILT");
  });

  test("installs what a uv.lock says, and no package that is not allowed", async (context) => {
    const { uvBin, backend, base } = await place(context);
    const project = join(base, "tools/words");
    await mkdir(project, { recursive: true });
    await writeFile(
      join(project, "pyproject.toml"),
      '[project]\nname = "words"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["python-dateutil==2.9.0"]\n',
    );
    await run(uvBin, ["lock", "--project", project, "--no-cache"], {
      env: { ...process.env, HOME: base },
    });
    const environment = {
      PIP_INDEX_URL: "https://pypi.org/simple",
      SSL_CERT_FILE: process.env["SSL_CERT_FILE"] ?? "",
    };
    const options = { backend, base, environment };
    const { environments, lines } = openEnvironments({ ...options, settings: { uvBin } });
    const tool = toolWith({ lockfile: "words/uv.lock" });
    expect(await environments.refuse(tool, never), JSON.stringify(lines)).toBeUndefined();
    const { dir } = environments.installationOf(tool)!;
    expect(await readFile(join(dir, "packages/six.py"), "utf8")).toContain("__version__");

    const settings = { uvBin, allowed: ["python-dateutil"], directory: join(base, "other") };
    const other = openEnvironments({ ...options, settings });
    expect(await other.environments.refuse(tool, never)).toMatchObject({
      reason: expect.stringContaining('package "six" is not in PACKAGE_ALLOW'),
      publicReason: "one of its packages is not allowed by the worker",
    });
    const there = openEnvironments({ ...options, settings: { uvBin, allowed: ["six"] } });
    expect(await there.environments.refuse(tool, never)).toMatchObject({
      reason: expect.stringContaining('package "python-dateutil" is not in PACKAGE_ALLOW'),
    });
    await writeFiles(project, { "uv.lock": "nothing" });
    expect(await other.environments.refuse(tool, never)).toMatchObject({
      reason: expect.stringContaining("uv export ended with"),
    });
  });
});
