/**
 * Hot reload of manifest and tool source, end to end.
 */
import { rename, rm, writeFile } from "node:fs/promises";
import { describe, expect, test, vi } from "vitest";
import { invokeTopic } from "../../../../worker/protocol/topics.ts";
import { type Rig, manifestText, namespace, startRig } from "../../../support/workers/rig.ts";
import { patience } from "../../../support/patience.ts";
import { isRoot } from "../../../support/is-root.ts";

const well = { function: "well" };
const sleeps = { function: "sleeps" };

describe("the manifest is followed while the worker runs", () => {
  const topicsOf = (rig: Rig) => rig.broker.subscriptions.flatMap(({ patterns }) => [...patterns]);

  async function replace(rig: Rig, text: string): Promise<void> {
    const next = `${rig.manifestPath}.next`;
    await writeFile(next, text);
    await rename(next, rig.manifestPath);
  }

  test("a new tool is served, and a removed one no longer", async () => {
    await using rig = await startRig({ tools: { old: well } });
    await replace(rig, manifestText({ fresh: well }));
    await vi.waitFor(
      () => expect(topicsOf(rig)).toContain(invokeTopic(namespace, "fresh")),
      patience,
    );
    expect(await rig.call("fresh")).toMatchObject({ kind: "success" });
    await vi.waitFor(
      () => expect(topicsOf(rig)).not.toContain(invokeTopic(namespace, "old")),
      patience,
    );
  });

  test("a running call keeps the entry it resolved", { tags: "full" }, async () => {
    await using rig = await startRig({ tools: { sleeps } });
    const running = rig.call("sleeps", { seconds: 3 });
    await vi.waitFor(() => expect(rig.logLines.join("\n")).toContain("call.received"), patience);
    await replace(rig, manifestText({ other: well }));
    await vi.waitFor(
      () => expect(topicsOf(rig)).toContain(invokeTopic(namespace, "other")),
      patience,
    );
    expect(await running).toMatchObject({ kind: "success", toolResult: { slept: 3 } });
  });

  for (const [what, text] of [
    ["broken", "version: 1\ntools:\n  well: [\n"],
    ["empty", ""],
    ["half-written", "version: 1\ntools:\n  well:\n    module: misbehaving\n    func"],
  ] as const) {
    test(
      `a ${what} file keeps the last good manifest and says so`,
      { tags: ["full", "promise-R8"] },
      async () => {
        await using rig = await startRig({ tools: { well } });
        await writeFile(rig.manifestPath, text);
        await vi.waitFor(
          () => expect(rig.logLines.join("\n")).toContain("manifest.unusable"),
          patience,
        );
        expect(await rig.call("well")).toMatchObject({ kind: "success" });
        await replace(rig, manifestText({ well, more: well }));
        await vi.waitFor(
          () => expect(topicsOf(rig)).toContain(invokeTopic(namespace, "more")),
          patience,
        );
      },
    );
  }

  test("a manifest that disappears changes nothing", { tags: "full" }, async () => {
    await using rig = await startRig({ tools: { well } });
    await rm(rig.manifestPath);
    await vi.waitFor(
      () => expect(rig.logLines.join("\n")).toContain("manifest.unusable"),
      patience,
    );
    expect(await rig.call("well")).toMatchObject({ kind: "success" });
  });

  test("edited source is used by the next call", async () => {
    const source = (answer: number) => `def run():\n    return {"answer": ${answer}}\n`;
    await using rig = await startRig({
      tools: { edited: { module: "edited", function: "run" } },
      files: { "edited.py": source(1) },
    });
    expect(await rig.call("edited")).toMatchObject({ toolResult: { answer: 1 } });
    await writeFile(`${rig.toolsDir}/edited.py`, source(22));
    expect(await rig.call("edited")).toMatchObject({ toolResult: { answer: 22 } });
  });

  test(
    "a tool whose package or mount is missing is answered with the reason, and the log has the whole of it",
    { tags: "full" },
    async () => {
      const source = "/nowhere-on-this-host/models";
      const missing = { function: "well", package: "no-such-package-anywhere" };
      await using rig = await startRig({
        tools: { well, missing, unmounted: { function: "well", mounts: [{ source }] } },
      });
      const said = (reason: string) => `is not available on this worker: ${reason}`;
      const [packageCall, mountCall] = await Promise.all([
        rig.call("missing"),
        rig.call("unmounted"),
      ]);
      expect(packageCall).toMatchObject({
        code: "TOOL_NOT_AVAILABLE",
        message: `Tool 'missing' ${said('package "no-such-package-anywhere" is not installed')}`,
      });
      expect(mountCall).toMatchObject({
        code: "TOOL_NOT_AVAILABLE",
        message: `Tool 'unmounted' ${said("one of its mounts is not there")}`,
      });
      const log = rig.logLines.join("\n");
      expect(log).toMatch(/"missing".*no-such-package-anywhere.*not installed/);
      expect(log).toContain(`${source} is not there`);
      await replace(rig, manifestText({ well, missing: well }));
      await vi.waitFor(
        async () => expect(await rig.call("missing")).toMatchObject({ kind: "success" }),
        patience,
      );
    },
  );
});

describe("a private tool directory of a root worker", () => {
  test("is readable for tools, and edits are seen", async (context) => {
    if (!isRoot) context.skip("needs root: another user's worker shares its uid with sandboxes");
    const source = (answer: number) => `def run():\n    return {"answer": ${answer}}\n`;
    await using rig = await startRig({
      tools: { edited: { module: "edited", function: "run" } },
      files: { "edited.py": source(1) },
      toolsDirMode: 0o700,
    });
    expect(await rig.call("edited")).toMatchObject({ toolResult: { answer: 1 } });
    await writeFile(`${rig.toolsDir}/edited.py`, source(22));
    expect(await rig.call("edited")).toMatchObject({ toolResult: { answer: 22 } });
  });
});
