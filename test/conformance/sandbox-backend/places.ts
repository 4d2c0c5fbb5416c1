/**
 * What a sandbox has of the host: its work directory, mounts, the status pipe.
 */
import { chmod, mkdir, mkdtemp, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type SandboxBackend, workDirInside } from "../../../worker/sandbox/sandbox.ts";
import { insidePaths } from "../../../worker/runners/inside-paths.ts";
import { workDirNames } from "../../../worker/sandbox/work/work-dir.ts";
import { never, request, runScript } from "../../integration/sandbox/sandbox-host.ts";
import { patience } from "../../support/patience.ts";
import type { Create, OpenBackend } from "./running.ts";

export function describePlaces(open: OpenBackend, create: Create): void {
  describe("the places of a sandbox", () => {
    test("are the work directory that the worker sees, to begin with", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      await sandbox.workDir.writeInput(
        "data.txt",
        { body: Readable.from("from the worker") },
        never,
      );
      const { exitCode, stdout } = await runScript(
        sandbox,
        "pwd -P; cat input/data.txt > output/copy.txt",
      );
      expect(exitCode).toBe(0);
      expect(stdout.text.trim()).toBe(sandbox.locate(workDirInside));
      const { files } = await sandbox.workDir.leftOutputs(10);
      await using copy = files[0]!.handle;
      expect(await copy.readFile("utf8")).toBe("from the worker");
    });

    test("are what is mounted, by the name inside on command line and in environment", async (context) => {
      const backend = await open(context);
      const source = await directoryWith(backend, "module.py", "VERSION = 1\n");
      const mounts = [{ source, target: insidePaths.pythonTools }];
      const environment = new Map([
        ["PATH", "/usr/bin:/bin"],
        ["PYTHONPATH", `/nowhere:${insidePaths.pythonTools}`],
      ]);
      await using sandbox = await backend.acquire(request({ mounts, environment }), never);
      const execution = await sandbox.start({
        argv: [
          "/bin/sh",
          "-c",
          'cat "$1" "${PYTHONPATH#*:}/module.py"',
          "sh",
          `${insidePaths.pythonTools}/module.py`,
        ],
      });
      const { stdout, stderr } = await execution.exited;
      expect(stderr.text).toBe("");
      expect(stdout.text).toBe("VERSION = 1\nVERSION = 1\n");
    });

    test("are told by the sandbox, for whoever writes them into a file", async (context) => {
      const backend = await open(context);
      const source = await directoryWith(backend, "main.js", "// runner\n");
      await mkdir(join(source, "within"));
      const other = await directoryWith(backend, "main.js", "// within\n");
      const mounts = [
        { source, target: insidePaths.runner },
        { source: other, target: `${insidePaths.runner}/within` },
      ];
      await using sandbox = await backend.acquire(request({ mounts }), never);
      const located = sandbox.locate(`${insidePaths.runner}/main.js`);
      const within = sandbox.locate(`${insidePaths.runner}/within/main.js`);
      const { stdout } = await runScript(sandbox, `cat '${located}' '${within}'`);
      expect(stdout.text).toBe("// runner\n// within\n");
      expect(sandbox.locate("/usr/bin/env")).toBe("/usr/bin/env");
    });

    test("are what was shared, also from where only the worker reads", async (context) => {
      const backend = await open(context);
      const directory = await directoryWith(backend, "private.txt", "shared\n");
      await chmod(directory, 0o700);
      await using shared = await backend.share(directory);
      const mounts = [{ source: shared.source, target: insidePaths.nodeTools }];
      await using sandbox = await backend.acquire(request({ mounts }), never);
      const path = sandbox.locate(`${insidePaths.nodeTools}/private.txt`);
      expect(await runScript(sandbox, `cat '${path}'`)).toMatchObject({
        stdout: { text: "shared\n" },
      });
    });

    test("are a status pipe that the worker reads", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const statuses: string[] = [];
      using channel = sandbox.workDir.readStatuses((text) => {
        statuses.push(text);
      });
      const pipe = sandbox.locate(`${workDirInside}/${workDirNames.status}`);
      await runScript(sandbox, `echo '{"status": "half way"}' > '${pipe}'`);
      channel.finish();
      expect(statuses).toEqual(["half way"]);
    });

    test("are removed when it is given back, and all others with the backend", async (context) => {
      const backend = await create(context, onTestFinished);
      const base = join(backend.scratchDir, "..");
      const sandbox = await backend.acquire(request(), never);
      await runScript(sandbox, "mkdir -p output/a/b; chmod 0 output/a; echo > output/x");
      await sandbox[Symbol.asyncDispose]();
      await vi.waitFor(
        () => expect(stat(sandbox.workDir.path)).rejects.toThrow("ENOENT"),
        patience,
      );
      await backend[Symbol.asyncDispose]();
      expect(await readdir(base)).toEqual([]);
    });
  });
}

/** A directory that sandboxes can reach, with one file in it; it goes with the backend. */
async function directoryWith(backend: SandboxBackend, name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(backend.scratchDir, "conformance-"));
  await chmod(directory, 0o755);
  await writeFile(join(directory, name), text);
  return directory;
}
