/**
 * Tools with packages of their own, end to end: installed in the background by real pip, and
 * imported in their sandboxes.
 */
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { writeWheel } from "../../support/packages/archives.ts";
import { requirePip } from "../../support/packages/worker-environments.ts";
import { installPatience, patience } from "../../support/patience.ts";
import {
  type Rig,
  type RigTool,
  manifestText,
  reachableDirectory,
  startRig,
} from "../../support/workers/rig.ts";

const source = "import greeting\ndef version(ctx): return {'version': greeting.VERSION}\n";
const greeting = (version: string, more: Partial<RigTool> = {}): RigTool => {
  return { module: "greets", function: "version", package: "greeting", version, ...more };
};

/** A rig that installs from wheels of the test. */
async function packagesRig(
  tools: Readonly<Record<string, RigTool>>,
  environment: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
): Promise<Rig & { readonly wheels: string }> {
  const wheels = await reachableDirectory();
  onTestFinished(() => rm(wheels, { recursive: true, force: true }));
  for (const version of ["1.0", "2.0"]) writeWheel(wheels, { name: "greeting", version });
  const rig = await startRig({
    tools,
    files: { "greets.py": source, ...files },
    environment: {
      PACKAGE_POLICY: "install",
      TOOLS_WHEELS_DIR: wheels,
      PIP_NO_INDEX: "1",
      PATH: "/usr/bin:/bin",
      HEALTH_PORT: "0",
      ...environment,
    },
  });
  return Object.assign(rig, { wheels });
}

async function replaceManifest(rig: Rig, tools: Readonly<Record<string, RigTool>>): Promise<void> {
  await replaceFile(rig.manifestPath, manifestText(tools));
}

/** At once, so that no half of it is read. */
async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.next`, text);
  await rename(`${path}.next`, path);
}

/** Waits without calls, which would keep the installers from the processors. */
async function logged(rig: Rig, atLeast: Readonly<Record<string, number>>): Promise<void> {
  const count = (event: string): number =>
    rig.logLines.filter((line) => line.includes(`"event":"${event}"`)).length;
  await vi.waitFor(() => {
    for (const [event, times] of Object.entries(atLeast))
      expect(count(event), event).toBeGreaterThanOrEqual(times);
  }, installPatience);
}

describe("packages of a tool's own", () => {
  test(
    "are there in two versions in one worker, and keep no other tool waiting",
    { tags: "full" },
    async (context) => {
      requirePip(context);
      await using rig = await packagesRig({
        one: greeting("==1.0"),
        two: greeting("==2.0"),
        absent: greeting("==3.0"),
        plain: { function: "well" },
      });
      expect(await rig.call("plain")).toMatchObject({ kind: "success" });
      await logged(rig, { "packages.installed": 2, "packages.failed": 1 });
      await vi.waitFor(async () => {
        expect(await rig.call("one")).toMatchObject({ toolResult: { version: "1.0" } });
        expect(await rig.call("two")).toMatchObject({ toolResult: { version: "2.0" } });
        expect(await rig.call("absent")).toMatchObject({
          code: "TOOL_NOT_AVAILABLE",
          message:
            "Tool 'absent' is not available on this worker: its packages could not be installed",
        });
      }, patience);
    },
  );

  test(
    "change behind calls: the former ones stay until the new ones are there",
    { tags: "full" },
    async () => {
      await using rig = await packagesRig(
        {
          tool: greeting("==1.0"),
          locked: { module: "greets", function: "version", requirements_file: "r.txt" },
        },
        {},
        { "r.txt": "greeting<2\n" },
      );
      const version = async (name: string): Promise<unknown> => {
        const result = await rig.call(name);
        return result.kind === "success" ? result.toolResult : result.kind;
      };
      await logged(rig, { "packages.installed": 2 });
      await vi.waitFor(async () => {
        expect(await version("tool")).toEqual({ version: "1.0" });
        expect(await version("locked")).toEqual({ version: "1.0" });
      }, patience);

      const locked = { module: "greets", function: "version", requirements_file: "r.txt" };
      await replaceManifest(rig, { tool: greeting("==3.0"), locked });
      await logged(rig, { "packages.failed": 1 });
      expect(await version("tool")).toEqual({ version: "1.0" });
      await replaceManifest(rig, { tool: greeting("==2.0"), locked });
      await logged(rig, { "packages.installed": 3 });
      await vi.waitFor(
        async () => expect(await version("tool")).toEqual({ version: "2.0" }),
        patience,
      );

      await replaceFile(join(rig.toolsDir, "r.txt"), "--index-url https://x\n");
      await logged(rig, { "packages.files_unusable": 1 });
      expect(await version("locked")).toEqual({ version: "1.0" });
      await replaceFile(join(rig.toolsDir, "r.txt"), "greeting>=2\n");
      await logged(rig, { "packages.installed": 4 });
      await vi.waitFor(
        async () => expect(await version("locked")).toEqual({ version: "2.0" }),
        patience,
      );
    },
  );
});
