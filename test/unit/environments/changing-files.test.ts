/**
 * Requirements files that change without the manifest. Nothing is installed: every installation
 * fails.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import {
  type EnvironmentsRig,
  openEnvironments,
  toolWith,
  writeFiles,
} from "../../support/packages/worker-environments.ts";

const never = new AbortController().signal;
const backend = {
  acquire: () => Promise.reject(new Error("no sandbox")),
  share: () => Promise.reject(new Error("no sandbox")),
};
const tool = toolWith({ requirements_file: "r.txt" });
let base: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "str-files-"));
  // After what a test opens, which may write until it is closed.
  onTestFinished(() => rm(base, { recursive: true }));
  // Sandboxes of a worker that is root have to pass it.
  await chmod(base, 0o755);
  await writeFiles(base, { "tools/other.txt": "" });
});

function open(): EnvironmentsRig {
  return openEnvironments({ base, backend, installs: "background", filesPollMs: 1 });
}

const put = (text: string): Promise<void> => writeFiles(base, { "tools/r.txt": text });

describe("the file of a refused tool", () => {
  test("is looked at until it can be used", async () => {
    const { environments, lines } = open();
    expect(await environments.refuse(tool, never)).toMatchObject({ reason: "r.txt is not there" });
    let { changed } = environments;
    await put("-r other.txt\n");
    await changed;
    ({ changed } = environments);
    expect(await environments.refuse(tool, never)).toMatchObject({
      reason: expect.stringContaining("the option -r is refused"),
    });
    await put("a==1\n");
    await changed;
    expect(await environments.refuse(tool, never)).toMatchObject({
      publicReason: expect.stringMatching(/^its packages /),
      keepsServed: true,
    });
    // That log line is about files of tools that are served.
    expect(lines.map(({ event }) => event)).not.toContain("packages.files_unusable");
  });

  test("is forgotten with its entry", async () => {
    const { environments } = open();
    await environments.refuse(tool, never);
    const { changed } = environments;
    environments.retain([], []);
    await put("a==1\n");
    const waited = new Promise((resolve) => setTimeout(resolve, 100, "nothing"));
    expect(await Promise.race([changed, waited])).toBe("nothing");
  });
});
