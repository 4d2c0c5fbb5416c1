/**
 * Which languages a worker opens, and what is said of tools in the others.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Runtime } from "../../../worker/manifest/manifest.ts";
import { publicRefusal } from "../../../worker/protocol/refusal.ts";
import { type Language, openRunners } from "../../../worker/runners/open.ts";
import type { ToolRunner } from "../../../worker/runners/runner.ts";
import { SandboxError } from "../../../worker/sandbox/sandbox.ts";
import { tool } from "../manifest/fixtures.ts";

type ModuleRuntime = Exclude<Runtime, "executable">;

const never = new AbortController().signal;
const nowhere = "/no/such/tools";

describe("the languages of a worker", () => {
  let directory: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "str-languages-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  /** No executables anywhere. */
  const executable: Language = {
    toolsDir: nowhere,
    variable: "TOOLS_EXECUTABLE_DIR",
    open: () => Promise.reject(new Error("there is no such directory")),
  };

  /** Languages with these directories, and what happens to their runners. */
  function languages(toolsDirs: Readonly<Record<ModuleRuntime, string>>) {
    const events: string[] = [];
    const language = (runtime: ModuleRuntime, failure?: Error): Language => ({
      toolsDir: toolsDirs[runtime],
      variable: `TOOLS_${runtime.toUpperCase()}_DIR`,
      open: async () => {
        events.push(`open ${runtime}`);
        if (failure !== undefined) throw failure;
        return {
          runtime,
          description: runtime,
          sources: [],
          prepare: () => Promise.reject(new Error("nothing is prepared here")),
          installationKeyOf: () => undefined,
          interpreterOf: () => Promise.reject(new Error("no interpreter here")),
          refuse: async ({ module }) => publicRefusal(`${runtime} refuses ${module}`),
          [Symbol.asyncDispose]: async () => void events.push(`close ${runtime}`),
        } satisfies ToolRunner;
      },
    });
    return { events, language };
  }

  const toolOf = (runtime: Runtime) => tool("tool", { runtime, module: "module" });

  test("are those that there is a directory of tools for, and each decides about its tools", async () => {
    const { events, language } = languages({ python: directory, node: directory });
    {
      await using runners = await openRunners({
        python: language("python"),
        node: language("node"),
        executable,
      });
      expect([...runners.byRuntime.keys()]).toEqual(["python", "node"]);
      expect(await runners.refuse(toolOf("node"), never)).toEqual(
        publicRefusal("node refuses module"),
      );
    }
    expect(events).toEqual(["open python", "open node", "close node", "close python"]);
  });

  test.each(["python", "node"] as const)(
    "are not asked for where there is none: without one of %s its tools are refused with the reason",
    async (missing) => {
      const toolsDirs = { python: directory, node: directory, [missing]: nowhere };
      const { events, language } = languages(toolsDirs);
      await using runners = await openRunners({
        python: language("python"),
        node: language("node"),
        executable,
      });
      expect(events).toHaveLength(1);
      expect(events).not.toContain(`open ${missing}`);
      expect(await runners.refuse(toolOf(missing), never)).toEqual({
        reason: `TOOLS_${missing.toUpperCase()}_DIR is ${nowhere}, which was not a directory when the worker started`,
        publicReason: `the worker has no directory of ${missing} tools`,
      });
    },
  );

  test("are an error where there is no directory at all", async () => {
    const { language } = languages({ python: nowhere, node: "/etc/hostname" });
    const opening = openRunners({
      python: language("python"),
      node: language("node"),
      executable,
    });
    await expect(opening).rejects.toMatchObject({
      name: "SandboxError",
      message: `${nowhere} is not a directory, and neither is /etc/hostname (TOOLS_NODE_DIR) or ${nowhere} (TOOLS_EXECUTABLE_DIR)`,
      setting: "toolsPythonDir",
    });
  });

  test("are all closed again where one cannot be opened", async () => {
    const { events, language } = languages({ python: directory, node: directory });
    const failure = new SandboxError("no interpreter");
    const opening = openRunners({
      python: language("python"),
      node: language("node", failure),
      executable,
    });
    await expect(opening).rejects.toBe(failure);
    expect(events).toEqual(["open python", "open node", "close python"]);
  });
});
