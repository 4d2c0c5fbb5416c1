/**
 * `--template`: what a Python runner does before it makes children, where nobody has made a sandbox
 * for it. What children do: test/integration/sandbox/template.test.ts.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { channelFd, python, runnerEntry } from "../run-tool.ts";

const settings = {
  network: true,
  terminals: false,
  gateway: false,
  tmpfs: {},
  filter: "",
  limits: {},
};

/** What a runner does with a module of this text when it is told `said`, and nothing more. */
async function runTemplate(source: string, said: string, argv: readonly string[] = []) {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "template-")));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "tool.py"), source);
  const argsFile = join(directory, "runner_args.json");
  const command = [python, "-I", "-B", runnerEntry, "--template", "tool", directory, argsFile];
  // As a worker does it: of what Node calls a pipe, the child's descriptor 0 could not be both read
  // and written here.
  const script = `exec "$@" <&${channelFd} ${channelFd}<&-`;
  const child = spawn("/bin/sh", ["-c", script, "sh", ...command, ...argv], {
    cwd: directory,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const channel = child.stdio[channelFd] as unknown as Duplex;
  channel.on("error", () => undefined);
  // A runner that ends at once is not there to be told even nothing.
  if (said === "") channel.end();
  else channel.end(said);
  const [line, stdout, stderr, [exitCode]] = await Promise.all([
    text(channel),
    text(child.stdout!),
    text(child.stderr!),
    once(child, "exit") as Promise<[number | null]>,
  ]);
  return { line, stdout, stderr, exitCode };
}

describe("a Python runner that is to make children", () => {
  test("ends, and imports nothing, when nobody tells it how", async () => {
    const ran = await runTemplate("print('imported', flush=True)", "");
    expect(ran).toMatchObject({ line: "", stdout: "", exitCode: 0 });
  });

  test("says why a module cannot be imported, and ends", async () => {
    const ran = await runTemplate("import nothing_of_that_name", `${JSON.stringify(settings)}\n`);
    expect(JSON.parse(ran.line)).toEqual({
      unfit: "ModuleNotFoundError: No module named 'nothing_of_that_name'",
    });
    expect(ran.exitCode).toBe(1);
  });

  test.each([
    ["a member is missing", { ...settings, filter: undefined }],
    ["a limit has a name that nobody knows", { ...settings, limits: { NOTHING: [1, 1] } }],
  ])("says that nothing can be isolated when of what it is told %s", async (_what, told) => {
    const ran = await runTemplate("", `${JSON.stringify(told)}\n`);
    expect(JSON.parse(ran.line)).toEqual({ unfit: expect.stringContaining("cannot be isolated") });
    expect(ran.exitCode).toBe(1);
  });

  test("says so when a module of the tool has the name of one that it needs", async () => {
    const source = "import sys, types\nsys.modules['ctypes'] = types.ModuleType('ctypes')\n";
    const ran = await runTemplate(source, `${JSON.stringify(settings)}\n`);
    expect(JSON.parse(ran.line)).toEqual({ unfit: expect.stringContaining("cannot be isolated") });
  });

  test("says so on a machine that it has no native part for", async () => {
    const source =
      "import collections, os\nmachine = collections.namedtuple('U', 'machine')('no-such')\nos.uname = lambda: machine\n";
    const ran = await runTemplate(source, `${JSON.stringify(settings)}\n`);
    const unfit = expect.stringMatching(/cannot be isolated: OSError: .*no-such\.so/);
    expect(JSON.parse(ran.line)).toEqual({ unfit });
  });

  test("takes three arguments", async () => {
    const ran = await runTemplate("", "", ["more"]);
    expect(ran).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("usage:") });
  });
});
