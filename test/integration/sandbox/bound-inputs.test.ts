/**
 * Inputs that a cold sandbox mounts read-only in place of a copy.
 */
import { chmod, mkdir, open, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Sandbox } from "../../../worker/sandbox/sandbox.ts";
import {
  never,
  request,
  requireRoot,
  runScript,
  sharedBackends,
  temporaryDirectory,
} from "./sandbox-host.ts";

const backend = sharedBackends();

const content = "what the cache has\n";

/** A file that all users can read, unless its directory says otherwise. */
async function sharedFile(mode = 0o755): Promise<string> {
  const directory = join(await temporaryDirectory(), "cache");
  await mkdir(directory);
  await chmod(directory, mode);
  const path = join(directory, "entry");
  await writeFile(path, content);
  await chmod(path, 0o644);
  return path;
}

async function stage(sandbox: Pick<Sandbox, "workDir">, name: string, path: string) {
  const file = await open(path);
  const body = file.createReadStream();
  onTestFinished(() => void body.destroy());
  const sizeBytes = (await stat(path)).size;
  await sandbox.workDir.writeInput(name, { body, file, sharedPath: path, sizeBytes }, never);
  return body;
}

test("a bound input is read in place, and no tool changes it", async (context) => {
  const path = await sharedFile();
  await using sandbox = await (await backend(context)).acquire(request(), never);
  const body = await stage(sandbox, "a ü.txt", path);
  expect(sandbox.workDir.boundInputs).toEqual([{ name: "a ü.txt", source: path }]);
  const { stdout, exitCode } = await runScript(
    sandbox,
    `cd input
cat 'a ü.txt'
for attempt in "echo changed >>" "echo changed >" "chmod 777" "truncate -s 0" "rm -f" "mv -f /etc/ld.so.cache" "touch -d @0"; do
  eval "$attempt 'a ü.txt'" 2>/dev/null && echo "did $attempt"
done
mv 'a ü.txt' other 2>/dev/null && echo renamed
ln 'a ü.txt' linked 2>/dev/null && echo linked
grep ' /sandbox/work/input/' /proc/self/mountinfo | cut -d' ' -f6
exit 0`,
  );
  expect(exitCode).toBe(0);
  expect(stdout.text).toMatch(/^what the cache has\nro\b\S*\n$/);
  expect(await readFile(path, "utf8")).toBe(content);
  expect((await stat(path)).mode & 0o777).toBe(0o644);
  // The worker gives its path back only after the sandbox.
  expect(body.destroyed).toBe(false);
  await sandbox[Symbol.asyncDispose]();
  expect(body.destroyed).toBe(true);
});

test("a bound input counts neither as the tool's disk nor as its files", async (context) => {
  const path = await sharedFile();
  await writeFile(path, Buffer.alloc(16 * 1024 ** 2, 1));
  const { profile: usual } = request();
  const limits = { ...usual.limits, diskBytes: 8 * 1024 ** 2 };
  const profile = { ...usual, limits };
  await using sandbox = await (await backend(context)).acquire(request({ profile }), never);
  await stage(sandbox, "data", path);
  const { exitCode, stdout } = await runScript(
    sandbox,
    "exec 3< input/data; sleep 0.3; wc -c < input/data; ls output",
  );
  expect({ exitCode, text: stdout.text }).toEqual({ exitCode: 0, text: `${16 * 1024 ** 2}\n` });
});

test("an input that only the worker reaches is copied", async (context) => {
  requireRoot(context);
  const path = await sharedFile(0o700);
  await using sandbox = await (await backend(context)).acquire(request(), never);
  const body = await stage(sandbox, "data", path);
  expect(sandbox.workDir.boundInputs).toEqual([]);
  expect(body.destroyed).toBe(true);
  const { stdout } = await runScript(sandbox, "echo more >> input/data; cat input/data");
  expect(stdout.text).toBe(`${content}more\n`);
  expect(await readFile(path, "utf8")).toBe(content);
});
