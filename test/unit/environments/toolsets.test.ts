/**
 * Requirements files and lockfiles of toolsets: read from the worker's copy of that toolset.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { Toolsets } from "../../../worker/manifest/toolsets/toolsets.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { openEnvironments, writeFiles } from "../../support/packages/worker-environments.ts";
import { profileNames } from "../manifest/fixtures.ts";

const never = new AbortController().signal;
const quiet = () => undefined;

const manifestOf = (fields: string): string =>
  `version: 1\ntools:\n  run: {module: m, function: f, ${fields}}\n`;

/** Why the tool `run` of each toolset is not served where packages are only checked. */
async function reasonsOf(files: Readonly<Record<string, string>>) {
  const base = await mkdtemp(join(tmpdir(), "str-toolset-files-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const directory = join(base, "toolsets");
  await writeFiles(directory, files);
  await writeFiles(base, { "outside.txt": "secret\n", "tools/list.txt": "of-the-worker\n" });
  const log = { info: quiet, warn: quiet, error: quiet };
  const options = { directory, base: join(base, "copies"), profileNames, newId, log };
  const toolsets = await Toolsets.open({ ...options, clock: systemClock }, never);
  const none = () => Promise.reject(new Error("a sandbox was asked for"));
  const { environments } = openEnvironments({
    ...{ backend: { acquire: none, share: none }, base, settings: { policy: "check" } },
    leaseToolset: (of) => toolsets.lease(of),
  });
  const reasonOf = async (tool: ToolEntry): Promise<string | undefined> =>
    (await environments.refuse(tool, never))?.reason;
  const reasons = new Map<string, string | undefined>();
  for (const { manifest } of toolsets.parts)
    for (const [name, tool] of manifest.tools) reasons.set(name, await reasonOf(tool));
  return { reasons: Object.fromEntries(reasons), toolsets, reasonOf };
}

test("each toolset has its own file of a name", { tags: "promise-S32" }, async () => {
  const { reasons, toolsets, reasonOf } = await reasonsOf({
    "there/manifest.yaml": manifestOf("requirements_file: list.txt"),
    "there/list.txt": "json\n",
    "absent/manifest.yaml": manifestOf("lockfile: lists/list.txt"),
    "absent/lists/list.txt": `absent==1 --hash=sha256:${"0".repeat(64)}\n`,
    "none/manifest.yaml": manifestOf("requirements_file: list.txt"),
  });
  expect(reasons).toEqual({
    there__run: undefined,
    absent__run: 'package "absent" is not installed',
    none__run: "list.txt is not there",
  });
  const { name, manifest } = toolsets.parts.find(({ name }) => name === "there")!;
  const gone = { ...manifest.tools.get("there__run")!, toolset: { name, revision: "gone" } };
  expect(await reasonOf(gone)).toBe('the toolset "there" has changed meanwhile');
});

test("no toolset has a file outside of its own", { tags: "promise-S32" }, async () => {
  const { reasons, toolsets } = await reasonsOf({
    "up/manifest.yaml": manifestOf("requirements_file: ../outside.txt"),
    "root/manifest.yaml": manifestOf("requirements_file: /etc/passwd"),
  });
  expect(reasons).toEqual({});
  expect(toolsets.problems.map((line) => line.split(": ", 3)[2])).toHaveLength(2);
});
