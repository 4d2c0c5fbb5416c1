/**
 * The classes of results that stand in for the original's: what they make of good and of bad
 * members was recorded from solace-agent-mesh 1.28.8 (with pydantic 2.12.5) and sam-tool-sdk 0.1.3.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fixtures, python, runnerDir } from "../run-tool.ts";

type Outcomes = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const recorded = JSON.parse(
  readFileSync(join(fixtures, "../golden/result-cases.json"), "utf8"),
) as Outcomes;
const program = [join(fixtures, "result_cases.py"), join(runnerDir, "stand_ins")];
const ours = JSON.parse(
  execFileSync(python, ["-B", ...program], { env: { PYTHONPATH: runnerDir }, encoding: "utf8" }),
) as Outcomes;

describe.each(Object.keys(recorded))("the results of %s", (name) => {
  test.each(Object.entries(recorded[name]!))("%s", (expression, outcome) => {
    expect(ours[name]![expression]).toEqual(outcome);
  });

  test("have been recorded in each case", () => {
    expect(Object.keys(ours[name]!)).toEqual(Object.keys(recorded[name]!));
  });
});

function ask(code: string): string {
  return execFileSync(python, ["-B", "-c", code], {
    env: { PYTHONPATH: runnerDir },
    encoding: "utf8",
  });
}

test("an error names the members that are wrong, and repeats no value", () => {
  const code = [
    "import pickle",
    "from secure_tool_runtime import ToolResult",
    "try: ToolResult(status=5, data_objects=[{'name': 'n', 'content': ['secret']}])",
    "except ValueError as error:",
    "  print(error)",
    "  print(error.error_count(), error.title, str(pickle.loads(pickle.dumps(error))) == str(error))",
  ].join("\n");
  expect(ask(code)).toBe(
    [
      "3 validation errors for ToolResult",
      "status",
      "  Input should be a valid string [type=string_type, input_type=int]",
      "data_objects.0.content.str",
      "  Input should be a valid string [type=string_type, input_type=list]",
      "data_objects.0.content.bytes",
      "  Input should be a valid bytes [type=bytes_type, input_type=list]",
      "3 ToolResult True",
      "",
    ].join("\n"),
  );
});

test("results of both packages take each other's data objects", () => {
  const code = [
    "from secure_tool_runtime import results, sdk_results",
    "for one, other in ((results, sdk_results), (sdk_results, results)):",
    "  print(one.ToolResult.ok('m', data_objects=[other.DataObject(name='n', content='c')]).data_objects[0].name)",
  ].join("\n");
  expect(ask(code)).toBe("n\nn\n");
});

test("members of members cannot be chosen, which is said", () => {
  const code = [
    "from secure_tool_runtime import ToolResult",
    "try: ToolResult().model_dump(exclude={'data': {'password'}})",
    "except TypeError as error: print(error)",
  ].join("\n");
  expect(ask(code)).toBe("include and exclude choose members of the model itself only\n");
});

test("what results are made of is loaded without pydantic, typing and json", () => {
  const code = [
    "import sys",
    "import secure_tool_runtime.results, secure_tool_runtime.sdk_results, secure_tool_runtime.artifacts",
    "print(sorted({'pydantic', 'typing', 'json', 'dataclasses', 'inspect', 're', 'logging'} & set(sys.modules)))",
  ].join("\n");
  const args = [
    "-I",
    "-S",
    "-B",
    "-c",
    `import sys\nsys.path.insert(0, ${JSON.stringify(runnerDir)})\n${code}`,
  ];
  expect(execFileSync(python, args, { encoding: "utf8" })).toBe("[]\n");
});
