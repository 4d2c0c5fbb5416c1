/**
 * A toolset with a requirements file, end to end: its change changes what its tool imports.
 *
 * @module-tag full
 */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { writeWheel } from "../../support/packages/archives.ts";
import { requirePip, writeFiles } from "../../support/packages/worker-environments.ts";
import { patience } from "../../support/patience.ts";
import { reachableDirectory, startRig } from "../../support/workers/rig.ts";

test("follows the requirements file of its toolset", async (context) => {
  requirePip(context);
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const [wheels, toolsets] = [join(base, "wheels"), join(base, "toolsets")];
  for (const version of ["1.0", "2.0"]) writeWheel(wheels, { name: "greeting", version });
  await mkdir(toolsets);
  const put = (toolset: string, requirement: string): Promise<void> =>
    writeFiles(join(toolsets, toolset), {
      "manifest.yaml":
        "version: 1\ntools:\n  say: {module: m, function: say, requirements_file: lists/r.txt}\n",
      "m.py": "import greeting\ndef say(ctx): return {'version': greeting.VERSION}\n",
      "lists/r.txt": requirement,
    });
  await put("kit", "greeting<2\n");
  await put("other", "greeting==2.0\n");
  await using rig = await startRig({
    tools: { plain: { function: "well" } },
    environment: {
      ...{ PACKAGE_POLICY: "install", PIP_NO_INDEX: "1", PATH: "/usr/bin:/bin" },
      ...{ TOOLS_WHEELS_DIR: wheels, TOOLSETS_DIR: toolsets },
    },
  });
  const untilVersion = (tool: string, version: string): Promise<void> =>
    vi.waitFor(
      async () => expect(await rig.call(tool)).toMatchObject({ toolResult: { version } }),
      patience,
    );
  await untilVersion("kit__say", "1.0");
  await untilVersion("other__say", "2.0");
  await untilVersion("kit__say", "1.0");
  await put("kit", "greeting>=2\n");
  await untilVersion("kit__say", "2.0");
});
