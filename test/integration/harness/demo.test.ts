/**
 * `harness demo` as a newcomer runs it, and as it must fail.
 */
import { chmod, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { CliProcess, runCliProcess } from "./cli-process.ts";

const timeoutMs = 120_000;

/**
 * A temporary directory of this test's own that sandboxes can reach, so that it shows what the demo
 * leaves behind.
 */
async function ownTmpdir(): Promise<string> {
  const directory = await createPassableDirectory("str-demo-test-");
  onTestFinished(() => directory[Symbol.asyncDispose]());
  return directory.path;
}

async function writeProgram(directory: string, script: string): Promise<string> {
  const path = join(directory, "bwrap");
  await writeFile(path, script);
  await chmod(path, 0o755);
  return path;
}

/** Whether a process is there, by the number that only it was given. */
async function workersOf(port: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (environment.includes(`DEV_BROKER_PORT=${port}\0`)) found.push(pid);
  }
  return found;
}

describe("harness demo", { timeout: timeoutMs }, () => {
  test("shows every call, measures, cleans up, and exits with 0", { tags: "full" }, async () => {
    const TMPDIR = await ownTmpdir();
    const { exitCode, stdout, stderr } = await runCliProcess(["demo"], { TMPDIR });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toContain(`Artifacts are files below ${TMPDIR}`);
    expect(stdout).toContain("… Echoing message...");
    expect(stdout).toMatch(/artifact summary\.txt, version 0, \d+ bytes:\n {7}Lines: \d+\n/);
    expect(stdout).toMatch(/sha256 \{"file":"README\.md"\}\n.*\n {3}✓ \{"sha256":"[\da-f]{64}"/);
    expect(stdout).toContain('✓ result: "328"');
    expect(stdout).toContain("✓ refused ('1.1.1.1', 53)");
    expect(stdout).toContain("✓ refused /etc/shadow");
    expect(stdout).toContain("✓ TOOL_ERROR: -300 celsius is below absolute zero");
    expect(stdout).toMatch(/\n8 of 8 calls ended as they should; median overhead \d+ ms.*\n$/);
    expect(stdout).not.toContain("\u001b");
    expect(await readdir(TMPDIR)).toEqual([]);
  });

  test.each([
    ["s3", "an S3 server"],
    ["gcs", "a Cloud Storage server"],
  ])("shows the objects of its artifacts with the store %s", { tags: "full" }, async (kind, it) => {
    const TMPDIR = await ownTmpdir();
    const { exitCode, stdout, stderr } = await runCliProcess(["demo", "--store", kind], { TMPDIR });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toMatch(
      new RegExp(`\\nArtifacts are objects of ${it} on http://127\\.0\\.0\\.1:\\d+\\.\\n`),
    );
    const places = ["README.md/0", "summary.txt/0"].map(
      (place) => `       demo/harness/harness/${place}\n`,
    );
    expect(stdout).toContain(`✓ the store has:\n${places.join("")}`);
    expect(stdout).toMatch(/\n8 of 8 calls ended as they should/);
    expect(await readdir(TMPDIR)).toEqual([]);
  });

  test(
    "says that the network was not refused, and exits with 1, when the sandbox leaks it",
    { tags: "full" },
    async () => {
      const TMPDIR = await ownTmpdir();
      const SANDBOX_BWRAP_BIN = await writeProgram(
        TMPDIR,
        `#!/bin/sh
# The worker does not start where the network leaks, so only tools find it leaking.
case "$*" in *tool_runner*) ;; *) exec /usr/bin/bwrap "$@" ;; esac
# One that is to have a network, and has the host's, is held for good.
case "$*" in *--block-fd*) exec /usr/bin/bwrap "$@" ;; esac
# The last word on the network comes behind the worker's options.
for word; do
  shift
  if [ "$word" = --json-status-fd ]; then set -- "$@" --share-net; fi
  set -- "$@" "$word"
done
exec /usr/bin/bwrap "$@"
`,
      );
      const { exitCode, stdout } = await runCliProcess(["demo"], { TMPDIR, SANDBOX_BWRAP_BIN });
      expect(exitCode).toBe(1);
      expect(stdout).toMatch(
        /✗ expected that all 2 attempts are refused; .*REACHED \('127\.0\.0\.1'/,
      );
      expect(stdout).toMatch(/\n7 of 8 calls ended as they should/);
      expect(await readdir(TMPDIR)).toEqual(["bwrap"]);
    },
  );

  test("uses colours where it is told that they are welcome", { tags: "full" }, async () => {
    const TMPDIR = await ownTmpdir();
    const { exitCode, stdout } = await runCliProcess(["demo"], { TMPDIR, FORCE_COLOR: "1" });
    expect(exitCode).toBe(0);
    expect(stdout).toContain("\u001b[1mSecure Tool Runtime: the demo\u001b[22m");
  });

  test("names what is not installed, and how to install it", async () => {
    const { exitCode, stderr } = await runCliProcess(["demo"], {
      SANDBOX_BWRAP_BIN: "/nonexistent/bwrap",
    });
    expect(exitCode).toBe(1);
    expect(stderr).toContain("not installed: bwrap (SANDBOX_BWRAP_BIN is /nonexistent/bwrap)");
    expect(stderr).toContain("apt-get install bubblewrap");
  });

  test("quotes a worker that cannot start", { tags: "full" }, async () => {
    const TMPDIR = await ownTmpdir();
    const SANDBOX_BWRAP_BIN = await writeProgram(
      TMPDIR,
      '#!/bin/sh\n[ "$1" != --version ] || exec /usr/bin/bwrap "$1"\necho no namespaces here >&2\nexit 1\n',
    );
    const { exitCode, stderr } = await runCliProcess(["demo"], { TMPDIR, SANDBOX_BWRAP_BIN });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/error: the worker ended with exit code \d+; its last words:/);
    expect(stderr).toContain("no namespaces here");
    expect(await readdir(TMPDIR)).toEqual(["bwrap"]);
  });

  test.for([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)(
    "leaves nothing behind after %s, and exits with %i",
    { tags: "full" },
    async ([signal, code]) => {
      const TMPDIR = await ownTmpdir();
      await using cli = new CliProcess(["demo"], { TMPDIR });
      const [, port = ""] = await cli.said("stdout", /listens on 127\.0\.0\.1:(\d+)/);
      await cli.said("stdout", /2\. /);
      expect(await workersOf(port)).not.toEqual([]);
      cli.child.kill(signal);
      expect((await cli.finished).exitCode).toBe(code);
      expect(await workersOf(port)).toEqual([]);
      expect(await readdir(TMPDIR)).toEqual([]);
    },
  );

  test("finds another temporary directory when its own is private", { tags: "full" }, async () => {
    const TMPDIR = await mkdtemp(join(tmpdir(), "private-"));
    onTestFinished(() => rm(TMPDIR, { recursive: true }));
    await using cli = new CliProcess(["demo"], { TMPDIR });
    await cli.said("stdout", /✓ \{"status":"success","echoed_message"/);
    expect(await readdir(TMPDIR)).toEqual([]);
    cli.child.kill("SIGTERM");
    expect((await cli.finished).exitCode).toBe(143);
  });
});
