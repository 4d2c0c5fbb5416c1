/**
 * What Python tools say of themselves: a table of signatures, docstrings, results and classes.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, describe, expect, test } from "vitest";
import { pypiPackages } from "../../support/pypi-packages.ts";
import { fixtures, python, removeWorkDirs, runTool, runnerDir } from "../tool-runner/run-tool.ts";

afterAll(removeWorkDirs);

/** One function or class of a table. */
interface Row {
  readonly name: string;
  readonly expected: unknown;
  readonly actual: Readonly<Record<string, object>> | null;
}

/** Where other Pythons of a machine are. */
const otherPythons = [9, 10, 12, 13, 14]
  .flatMap((minor) => [`/usr/bin/python3.${minor}`, `/usr/local/bin/python3.${minor}`])
  .filter((path) => existsSync(path));

/** Describes the functions of these tables by one Python. */
function describeTables(program: string, packages: string | undefined, tables: readonly string[]) {
  const { stdout, stderr, status } = spawnSync(
    program,
    ["-B", `${fixtures}/describe_check.py`, runnerDir, `${fixtures}/described`, ...tables],
    { encoding: "utf8", env: packages === undefined ? {} : { PYTHONPATH: packages } },
  );
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as readonly Row[];
}

const tables = ["plain_types", "later_types", "docstrings", "results", "classes"];
const rows = describeTables(python, undefined, tables);
const ajv = new Ajv2020({ strict: false, validateFormats: false });

function schemasOf({ expected, actual }: Row): readonly object[] {
  if (actual === null) return [];
  const isWhole = "parameters" in actual || "config" in actual || "description" in actual;
  const members = ["parameters", "config", "result"].flatMap((name) => actual[name] ?? []);
  return isWhole && !Object.hasOwn(expected as object, "type") ? members : [actual];
}

test("the tables are not empty", () => {
  expect(rows.length).toBeGreaterThan(70);
});

test.each(rows)("$name", (row) => {
  expect(row.actual).toEqual(row.expected);
  for (const schema of schemasOf(row)) ajv.compile(schema);
});

describe.skipIf(otherPythons.length === 0)("other Pythons", () => {
  test.each(otherPythons)("%s says the same", { tags: "full" }, (program) => {
    const wrong = describeTables(program, undefined, tables).filter(
      // Before 3.10, Python cannot evaluate `int | None`, which is left open.
      ({ name }) => !(program.endsWith(".9") && name.startsWith("bars ")),
    );
    expect(wrong.map(({ name, actual }) => [name, actual])).toEqual(
      wrong.map(({ name, expected }) => [name, expected]),
    );
  });
});

test.for<[requirement: string, table: string]>([
  ["pydantic", "with_pydantic"],
  ["pydantic<2", "with_pydantic_1"],
])("models of %s", { tags: "full" }, async ([requirement, table], context) => {
  const packages = await pypiPackages(context, [requirement]);
  for (const row of describeTables(python, packages, [table])) {
    expect([row.name, row.actual]).toEqual([row.name, row.expected]);
    for (const schema of schemasOf(row)) ajv.compile(schema);
  }
});

describe("the runner that describes", () => {
  const members = { describe: true };

  test("calls nothing, and keeps no word of its own on stdout", async () => {
    const run = await runTool("describing_tools", "ends_the_process", { members });
    expect(run).toMatchObject({ exitCode: 0, stdout: "imported\n", stderr: "" });
    expect(run.document).toEqual({
      result: {
        description: "Never to be called.",
        parameters: {
          type: "object",
          properties: { a: { type: "integer" } },
          required: ["a"],
          additionalProperties: false,
        },
        artifact_parameters: {},
      },
      outputs: {},
    });
  });

  type Case = [what: string, name: string, properties: object | undefined];
  const usual: readonly Case[] = [
    ["a signature of the tool's making", "own_signature", { a: {} }],
    ["a signature that cannot be read", "signature_that_raises", undefined],
  ];
  const others: readonly Case[] = [
    ["annotations that are no types", "lying_annotations", { a: {}, b: {}, c: {} }],
    ["annotations that run code", "annotation_that_exits", { a: {} }],
    ["a class whose schema raises", "model_that_raises", { a: { $ref: "#/$defs/Raising" } }],
    ["an annotation of 300 levels", "deep_annotation", { a: { type: "array" } }],
    ["a docstring that is no text", "docstring_that_is_no_text", {}],
  ];
  const isStood = async ([, name, properties]: Case): Promise<void> => {
    const run = await runTool("describing_tools", name, { members });
    expect(run.exitCode).toBe(0);
    const { parameters } = (run.document as { result: { parameters?: object } }).result;
    if (properties === undefined) expect(parameters).toBeUndefined();
    else expect(parameters).toMatchObject({ properties });
  };
  test.for(usual)("stands %s", isStood);
  test.for(others)("stands %s", { tags: "full" }, isStood);

  test("cuts a huge docstring", async () => {
    const run = await runTool("describing_tools", "huge_docstring", { members });
    const { description } = (run.document as { result: { description: string } }).result;
    expect(description).toHaveLength(4_000);
    expect(description.endsWith("…")).toBe(true);
  });

  test.for<[module: string, name: string, code: string]>([
    ["describing_tools", "no_such_function", "TOOL_NOT_FOUND"],
    ["raises_on_import", "tool", "IMPORT_ERROR"],
  ])("of module %s and function %s answers %s", async ([module, name, code]) => {
    const run = await runTool(module, name, { members });
    expect(run.document).toMatchObject({ error_code: code });
  });
});
