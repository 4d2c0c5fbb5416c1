/**
 * Pythons that uv downloads, from a list of the test's with one archive: that of this machine.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { findByUv } from "../../../worker/runners/python/uv.ts";
import { temporaryDirectory } from "../../integration/sandbox/sandbox-host.ts";
import { hashOf } from "../../support/packages/archives.ts";
import { pypiPackages, python } from "../../support/pypi-packages.ts";

const run = promisify(execFile);

const aboutPython = `
import os, sys, sysconfig
print(*sys.version_info[:3], sysconfig.get_path("stdlib"), os.path.realpath(sys.executable))`;
/** The least of a Python: its program and its standard library, without links out of it. */
const pack = `
set -e
mkdir -p python/bin python/lib
cp "$1" "python/bin/python$3"
ln -s "python$3" python/bin/python3
cp -r "$2" "python/lib/python$3"
rm -rf python/lib/python*/test python/lib/python*/config-*
find python -type l -lname '/*' -delete
tar -czf python.tar.gz python`;

/** A directory with an archive of this machine's Python, and its list for uv. */
async function mirror(): Promise<{ readonly version: string; readonly list: string }> {
  const base = await temporaryDirectory();
  const { stdout } = await run(python, ["-I", "-c", aboutPython]);
  const [major, minor, patch, library = "", program = ""] = stdout.trim().split(" ");
  await run("/bin/sh", ["-c", pack, "pack", program, library, `${major}.${minor}`], { cwd: base });
  const archive = join(base, "python.tar.gz");
  const version = `${major}.${minor}.${patch}`;
  const family = process.arch === "arm64" ? "aarch64" : "x86_64";
  const entry = {
    ...{ name: "cpython", arch: { family, variant: null }, os: "linux", libc: "gnu" },
    ...{ major: Number(major), minor: Number(minor), patch: Number(patch), prerelease: "" },
    ...{ url: `file://${archive}`, sha256: hashOf(archive).slice("sha256:".length) },
    ...{ variant: null, build: "20260101" },
  };
  await writeFile(
    join(base, "list.json"),
    JSON.stringify({ [`cpython-${version}-linux-${family}-gnu`]: entry }),
  );
  return { version, list: `file://${join(base, "list.json")}` };
}

test("a Python of uv is downloaded where the operator says so", async (context) => {
  const uvBin = join(await pypiPackages(context, ["uv"]), "bin", "uv");
  const { version, list } = await mirror();
  const home = await temporaryDirectory();
  const installed = join(home, "pythons");
  await mkdir(installed);
  const environment = {
    HOME: home,
    UV_PYTHON_INSTALL_DIR: installed,
    UV_PYTHON_DOWNLOADS_JSON_URL: list,
  };
  await expect(findByUv(version, { environment, uvBin, downloads: false })).rejects.toThrow(
    `uv python install ${version} gets it`,
  );
  expect(await readdir(installed)).toEqual([]);
  const program = await findByUv(version, { environment, uvBin, downloads: true });
  expect(program).toContain(installed);
  expect((await run(program, ["--version"])).stdout).toBe(`Python ${version}\n`);
  expect(await findByUv(version, { environment, uvBin, downloads: false })).toBe(program);
  await expect(findByUv("3.99", { environment, uvBin, downloads: true })).rejects.toThrow(
    "uv cannot download Python 3.99",
  );
});
