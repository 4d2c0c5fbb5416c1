/**
 * The original's package, whole and from PyPI, in place of the stand-ins; and what its agents make
 * of our messages.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { fromAdk } from "../../../worker/protocol/discovery/adk-schema.ts";
import { reduceParameters } from "../../../worker/protocol/discovery/agent-schema.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import {
  removeWorkDirs,
  runToolWith,
  runnerEntry,
} from "../../integration/tool-runner/run-tool.ts";
import { installMs, meshPython, meshVariables } from "../../support/original/mesh-python.ts";
import { python } from "../../support/pypi-packages.ts";
import { type RigTool, startRig } from "../../support/workers/rig.ts";

afterAll(removeWorkDirs);

/** Milliseconds. Each process that imports the package takes seconds of processor time for it. */
const timeout = installMs + 600_000;
const fixtures = join(import.meta.dirname, "../../fixtures");
const runnerDir = join(import.meta.dirname, "../../../tool-runner/python");

/** What a program of the fixtures prints, in lines, for these on its standard input. */
async function print(
  program: string,
  script: string,
  { input = "", standIns = false }: { readonly input?: string; readonly standIns?: boolean } = {},
): Promise<readonly unknown[]> {
  const path = standIns ? { PYTHONPATH: `${runnerDir}:${runnerDir}/stand_ins` } : {};
  const env = { PATH: "/usr/bin:/bin", ...meshVariables, ...path };
  const argv = ["-B", "-W", "ignore", join(fixtures, "original", script)];
  const running = promisify(execFile)(program, argv, { env });
  running.child.stdin?.end(input);
  const lines = (await running).stdout.trim().split("\n");
  return lines.map((line) => JSON.parse(line) as unknown);
}

const tools: Readonly<Record<string, RigTool>> = {
  report: { function: "report" },
  convert: { class_name: "Convert" },
  words: { class_name: "Words", tools: ["count"] },
};
const artifact = (text: string) => ({
  bytes: Buffer.from(text),
  filename: `${text}.txt`,
  mimeType: "text/plain",
  version: 0,
});

/** Results and descriptions of the portable tools, by an interpreter. */
async function behaviour(interpreter?: string): Promise<Readonly<Record<string, unknown>>> {
  // The package takes 600 MB of memory, and more of addresses.
  const common = { module: "portable", sandbox_profile: "permissive" };
  const own = { ...common, ...(interpreter !== undefined && { python: "mesh" }) };
  const entries = Object.entries(tools).map(([name, tool]) => [name, { ...own, ...tool }] as const);
  const environment: Readonly<Record<string, string>> =
    interpreter === undefined ? {} : { SANDBOX_PYTHONS: `mesh=${interpreter}` };
  await using rig = await startRig({
    tools: Object.fromEntries(entries),
    files: { "portable.py": await readFile(join(fixtures, "original/portable.py"), "utf8") },
    environment,
  });
  const call = async (tool: string, args: JsonObject, toolConfig: JsonObject, inputs: string[]) => {
    const preloaded = new Map(inputs.map((name) => [name, artifact(name.slice(0, 4))]));
    const result = await rig.call(tool, args, { toolConfig, preloaded, timeoutSeconds: 300 });
    if (result.kind !== "success") throw new Error(JSON.stringify(result));
    return [result.toolResult, result.createdArtifacts.map(({ filename }) => filename)];
  };
  const title = { title: "Sun", style: "rich", weights: { a: 0.5 } };
  const results = {
    report: await call("report", title, { unit: "cm" }, ["source", "more[0]"]),
    convert: await call("convert", { lengths: [1, 2.5] }, { factor: 2 }, ["table"]),
    count: await call("count", { text: "letters", letters: ["t", "e"] }, { unit: "cm" }, []),
  };
  const descriptions: Record<string, unknown> = {};
  // Without the worker, which gives a description thirty seconds: enough on an idle machine.
  for (const [name, { tools: [provided] = [], ...names }] of Object.entries(tools)) {
    const members = { function: undefined, ...names, tool_name: provided, describe: true };
    const command = [interpreter ?? python, "-I", "-B", runnerEntry];
    const toolsDir = join(fixtures, "original");
    const run = await runToolWith({ command, toolsDir }, "portable", "", { members });
    descriptions[name] = run.document?.["result"] ?? run;
  }
  return { ...results, descriptions };
}

test(
  "the stand-ins have the methods and parameters of the package",
  { timeout },
  async (context) => {
    const mesh = await meshPython(context);
    const [ofMesh] = await print(mesh, "surface.py");
    const [ofStandIns] = await print(python, "surface.py", { standIns: true });
    // They may have more: those of later packages.
    expect(ofStandIns).toMatchObject(ofMesh as object);
  },
);

test(
  "tools do the same, and say the same of themselves, with either",
  { timeout },
  async (context) => {
    const mesh = await meshPython(context);
    const withStandIns = await behaviour();
    expect(withStandIns).toMatchObject({
      report: [{ data: { source: [true, "sour", 0, "sour"], unit: "cm" } }, ["report.txt"]],
      convert: [{ lengths: [2, 5], table: [true, "tabl"] }, []],
      count: [{ counted: { t: 2, e: 2 }, unit: "cm" }, []],
      descriptions: {
        report: { description: "Writes a report.", parameters: { required: ["title", "source"] } },
        convert: { description: "Converts lengths.", parameters: { required: ["lengths"] } },
        words: { parameters: { required: ["text", "letters"] } },
      },
    });
    expect(await behaviour(mesh)).toEqual(withStandIns);
  },
);

test("an agent's model is told all that a message says of a tool", { timeout }, async (context) => {
  const mesh = await meshPython(context);
  const golden = JSON.parse(await readFile(join(fixtures, "golden/discovery.json"), "utf8")) as {
    notifications: [{ payload: { params: JsonObject } }];
  };
  const examples = JSON.parse(
    await readFile(join(fixtures, "golden/example-descriptions.json"), "utf8"),
  ) as Record<string, { description: string; parameters: JsonObject }>;
  const described = [
    golden.notifications[0].payload.params,
    ...Object.entries(examples).map(([name, { description, parameters }]) => {
      return { tool_name: name, description, parameters: reduceParameters(parameters) };
    }),
  ];
  const input = described.map((each) => JSON.stringify(each)).join("\n");
  const told = (await print(mesh, "agent.py", { input })) as JsonObject[];
  // The agent writes the keywords of its own schema class.
  const plain = ({ parameters, ...rest }: JsonObject) => ({ ...rest, schema: fromAdk(parameters) });
  expect(told.map(plain)).toEqual(
    described.map(({ tool_name: name, description, parameters }) =>
      plain({ name, description, parameters }),
    ),
  );
});
