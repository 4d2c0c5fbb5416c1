/**
 * Toolsets, end to end: their tools in every language, what these see, and how they change.
 */
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { patience } from "../../support/patience.ts";
import { type Rig, reachableDirectory, startRig } from "../../support/workers/rig.ts";
import { writeZip } from "../../unit/manifest/toolsets/zip-files.ts";

const manifests = {
  first: `
version: 1
tools:
  look: {module: words, function: look}
  shout: {runtime: node, module: lib/shout.ts, function: shout}
  shell: {runtime: executable, executable: say}
`,
  second: `
version: 1
tools:
  look: {module: words, function: look}
  alone: {module: words, function: look, isolate: true}
`,
};

const words = (own: string): string => `
import os, sys
import ${own}
def look(ctx, path="/tools"):
    found = [os.path.join(a, f)[len(path):] for a, _, b in os.walk(path) for f in b]
    return {"own": ${own}.name, "found": sorted(f for f in found if "secure" not in f)}
`;

const files = {
  "first/manifest.yaml": manifests.first,
  "first/words.py": words("first_only"),
  "first/first_only.py": 'name = "first"',
  "first/lib/package.json": '{"type": "module"}',
  "first/lib/shout.ts":
    'import { loud } from "./loud.ts"; export const shout = ({ text }: { text: string }) => ({ text: loud(text) });',
  "first/lib/loud.ts": "export const loud = (text: string): string => text.toUpperCase();",
  "first/say": `#!/bin/sh\nprintf '{"result": {"self": "%s"}}' "$0" >result.json\n`,
};

describe("the tools of toolsets", { tags: "promise-S32" }, () => {
  let rig: Rig;
  let directory: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(await reachableDirectory(), "toolsets-"));
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, name)), { recursive: true });
      await writeFile(join(directory, name), text, { mode: 0o755 });
    }
    writeZip(join(directory, "second.zip"), [
      { name: "manifest.yaml", text: manifests.second },
      { name: "words.py", text: words("second_only") },
      { name: "second_only.py", text: 'name = "second"' },
    ]);
    rig = await startRig({
      tools: { own: { function: "well" } },
      environment: { TOOLSETS_DIR: directory },
    });
  });
  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
    await rm(dirname(directory), { recursive: true });
  });

  async function result(tool: string, args = {}): Promise<unknown> {
    const answer = await rig.call(tool, args);
    return answer.kind === "success" ? answer.toolResult : answer;
  }

  test("see their own toolset and nothing else of the tools", async () => {
    expect(await result("first__look")).toEqual({
      own: "first",
      found: [
        "/python/first_only.py",
        ...["loud.ts", "package.json", "shout.ts"].map((name) => `/python/lib/${name}`),
        ...["/python/manifest.yaml", "/python/say", "/python/words.py"],
      ],
    });
    expect(await result("second__look")).toEqual({
      own: "second",
      found: ["/python/manifest.yaml", "/python/second_only.py", "/python/words.py"],
    });
    expect(await result("second__alone")).toMatchObject({
      code: "IMPORT_ERROR",
      message: expect.stringMatching(/second_only/),
    });
    expect(await result("own", { message: "x" })).toMatchObject({});
  });

  test("may be in every language, also in one that has no directory of tools", async () => {
    expect(await result("first__shout", { text: "quiet" })).toEqual({ text: "QUIET" });
    expect(await result("first__shell")).toEqual({ self: "/tools/executable/say" });
  });

  test("change with it while the worker runs", async () => {
    const next = join(directory, ".second.zip");
    writeZip(next, [
      { name: "manifest.yaml", text: manifests.second },
      { name: "words.py", text: words("changed") },
      { name: "changed.py", text: 'name = "third"' },
    ]);
    await rename(next, join(directory, "second.zip"));
    await vi.waitFor(
      async () => expect(await result("second__look")).toMatchObject({ own: "third" }),
      patience,
    );
    expect(await result("first__look")).toMatchObject({ own: "first" });
  });
});
