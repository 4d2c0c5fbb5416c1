/**
 * What the demo needs of the host, and what it says when that is not there.
 */
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { findPrograms } from "../../../harness/prerequisites.ts";
import { createPassableDirectory } from "../../../harness/temporary.ts";

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "prerequisites-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

describe("the programs of the host", () => {
  test("are those that the environment names", async () => {
    const program = join(await temporaryDirectory(), "program");
    await writeFile(program, "");
    await chmod(program, 0o755);
    const environment = { SANDBOX_BWRAP_BIN: program, SANDBOX_PYTHON_BIN: program };
    expect(await findPrograms(environment, "linux")).toEqual({
      bwrapBin: program,
      pythonBin: program,
    });
  });

  test("that are missing are named together, with the packages they come in", async () => {
    const plain = join(await temporaryDirectory(), "not-executable");
    await writeFile(plain, "");
    await chmod(plain, 0o644);
    const environment = { SANDBOX_BWRAP_BIN: plain, SANDBOX_PYTHON_BIN: "/nonexistent" };
    await expect(findPrograms(environment, "linux")).rejects.toThrow(
      [
        `not installed: bwrap (SANDBOX_BWRAP_BIN is ${plain}), python3 (SANDBOX_PYTHON_BIN is /nonexistent). Install with`,
        "  apt-get install bubblewrap python3   (Debian, Ubuntu)",
        "  dnf install bubblewrap python3   (Fedora, RHEL)",
        "  apk add bubblewrap python3   (Alpine)",
      ].join("\n"),
    );
  });

  test("are not even looked for where there is no bubblewrap", async () => {
    await expect(findPrograms({}, "darwin")).rejects.toThrow(/needs Linux .* this is darwin/);
  });
});

describe("a passable directory", () => {
  test("can be passed by everybody and listed by its owner only, and goes with everything in it", async () => {
    const directory = await createPassableDirectory("passable-test-");
    const { mode } = await stat(directory.path);
    expect(mode & 0o777).toBe(0o711);
    await writeFile(join(directory.path, "file"), "");
    await directory[Symbol.asyncDispose]();
    await expect(stat(directory.path)).rejects.toThrow("ENOENT");
  });
});
