/**
 * Calls that find their sandbox ready, by real sandboxes.
 */
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Rig, type RigTool, nodeTool, startRig } from "../../support/workers/rig.ts";
import { patience } from "../../support/patience.ts";

/** Leaves something in every place that it can write to, and tells what it found there. */
const leaving = `
import os
PLACES = [os.environ["HOME"], "/dev/shm", os.getcwd(), "output"]

def run(ctx, name):
    found = [entry for place in PLACES for entry in os.listdir(place) if entry.startswith("left-")]
    for place in PLACES:
        open(os.path.join(place, "left-" + name), "w").close()
    ctx.send_status("left " + name)
    return {"found": found, "name": name}
`;

const reading = `
def run(path):
    with open(path) as file:
        return {"text": file.read()}
`;

const responseSchema = z.object({
  result: z.object({ execution: z.object({ start: z.string() }) }),
});

/** A call that succeeds: its result, and how it came to its sandbox. */
async function call(rig: Rig, tool: string, args: Record<string, string> = {}) {
  const result = await rig.call(tool, args);
  if (result.kind !== "success") throw new Error(JSON.stringify(result));
  const { start } = responseSchema.parse(result.response).result.execution;
  return { start, result: result.toolResult };
}

const pool = { start: "pool", warm: { min: 1, max: 4 } } as const;
const languages: [string, RigTool][] = [
  ["Python", { module: "leaving", function: "run", ...pool }],
  ["Node", nodeTool("leaving.js", "run", pool)],
];
const nodeLeaving = `
export const run = ({ name }) => ({ found: [], name });
`;

describe("a sandbox that waits", () => {
  test.for(languages)(
    "serves one call of a %s tool, and another one comes",
    { tags: "full" },
    async ([, tool]) => {
      await using rig = await startRig({
        tools: { tool },
        files: { "leaving.py": leaving },
        nodeFiles: { "leaving.js": nodeLeaving },
        isWarm: true,
      });
      for (const name of ["a", "b", "c"]) {
        await rig.untilWaiting("tool");
        expect(await call(rig, "tool", { name })).toEqual({
          start: "pool",
          result: { found: [], name },
        });
      }
    },
  );

  test("is never had by two, however many call at once", { tags: "full" }, async () => {
    const tool = { module: "leaving", function: "run", ...pool };
    await using rig = await startRig({
      tools: { tool },
      files: { "leaving.py": leaving },
      isWarm: true,
    });
    await rig.untilWaiting("tool");
    const names = Array.from({ length: 24 }, (_, index) => `call-${index}`);
    const answers = await Promise.all(names.map((name) => call(rig, "tool", { name })));
    expect(answers.map(({ result }) => result)).toEqual(names.map((name) => ({ found: [], name })));
    expect(new Set(answers.map(({ start }) => start))).toContain("pool");
  });

  test("is gone with its worker, and its directory as well", async () => {
    const rig = await startRig({
      tools: { tool: { module: "leaving", function: "run", start: "pool", warm: { min: 3 } } },
      files: { "leaving.py": leaving },
      isWarm: true,
    });
    await using _ = rig;
    await rig.untilWaiting("tool", 3);
    const { workDir } = rig.config.sandbox;
    await rig.worker[Symbol.asyncDispose]();
    expect(await readdir(workDir)).toEqual([]);
  });
});

test(
  "no start leaves anything of a tool's memory to core dumps",
  { tags: "promise-S16" },
  async () => {
    const module = "reading";
    const starts = { cold: {}, pool: { warm: pool.warm }, template: { warm: pool.warm } } as const;
    const tools = Object.fromEntries(
      Object.entries(starts).map(([start, warm]) => [
        start,
        { module, function: "run", sandbox_profile: "standard", start, ...warm } as RigTool,
      ]),
    );
    await using rig = await startRig({ tools, files: { "reading.py": reading }, isWarm: true });
    for (const start of Object.keys(starts)) {
      if (start !== "cold") await rig.untilWaiting(start);
      expect(await call(rig, start, { path: "/proc/self/coredump_filter" })).toEqual({
        start,
        result: { text: "00000000\n" },
      });
    }
  },
);

describe("a tool whose import fails", () => {
  test("answers IMPORT_ERROR as it does cold, and is not tried again and again", async () => {
    await using rig = await startRig({
      tools: { tool: { module: "broken", function: "run", ...pool } },
      files: { "broken.py": "import there_is_no_such_module\n" },
      isWarm: true,
    });
    const logged = (event: string) => rig.logLines.filter((line) => line.includes(`"${event}"`));
    const unfit = () => logged("warm_start.unfit").length;
    await expect.poll(unfit, patience).toBeGreaterThan(0);
    expect(await rig.call("tool")).toMatchObject({ kind: "error", code: "IMPORT_ERROR" });
    // Code that was written just before the worker started counts as changed once.
    expect(unfit()).toBeLessThanOrEqual(1 + logged("code.changed").length);
  });
});

describe("a sandbox that waits with a part of the host", () => {
  async function withMount() {
    await using owned = new AsyncDisposableStack();
    const base = "/var/tmp";
    const file = join(base, `str-mounted-${process.pid}-${Math.random().toString(36).slice(2)}`);
    await writeFile(file, "first");
    owned.defer(() => rm(file, { force: true }));
    const mounts = [{ source: file, target: "/data/file" }];
    const rig = owned.use(
      await startRig({
        tools: { tool: { module: "reading", function: "run", mounts, ...pool } },
        files: { "reading.py": reading },
        environment: { SANDBOX_ALLOWED_MOUNTS: base },
        isWarm: true,
      }),
    );
    await rig.untilWaiting("tool");
    const all = owned.move();
    return { rig, file, [Symbol.asyncDispose]: () => all.disposeAsync() };
  }
  const args = { path: "/data/file" };

  test("serves calls as long as that is what it was", { tags: "full" }, async () => {
    await using scene = await withMount();
    expect(await call(scene.rig, "tool", args)).toEqual({
      start: "pool",
      result: { text: "first" },
    });
  });

  test("serves none when it is another file now", async () => {
    await using scene = await withMount();
    await writeFile(`${scene.file}.next`, "second");
    await rename(`${scene.file}.next`, scene.file);
    expect(await call(scene.rig, "tool", args)).toEqual({
      start: "cold",
      result: { text: "second" },
    });
    await scene.rig.untilWaiting("tool");
  });

  test("serves none when it is gone", { tags: "full" }, async () => {
    await using scene = await withMount();
    await rm(scene.file);
    expect(await scene.rig.call("tool", args)).toMatchObject({
      kind: "error",
      code: "TOOL_NOT_AVAILABLE",
    });
  });
});
