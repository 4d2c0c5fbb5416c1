/**
 * What stubs say of `tools` besides the tools, against what the packages for authors declare.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import { pythonStubs } from "../../../../worker/gateway/stubs/python.ts";
import { typescriptStubs } from "../../../../worker/gateway/stubs/typescript.ts";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../../../../tool-runner/${name}`, import.meta.url));

/** The text of each member of each interface, without comments. */
function interfacesOf(text: string): ReadonlyMap<string, readonly string[]> {
  const file = ts.createSourceFile("tools.d.ts", text, ts.ScriptTarget.ES2024);
  const printer = ts.createPrinter({ removeComments: true });
  const printed = (node: ts.Node): string =>
    printer.printNode(ts.EmitHint.Unspecified, node, file).replaceAll(/\s+/g, " ");
  const interfaces = file.statements.filter(ts.isInterfaceDeclaration);
  return new Map(interfaces.map(({ name, members }) => [name.text, members.map(printed)]));
}

test("declarations have the members of the package for Node", () => {
  const { ToolArguments, ToolResults, Tools, ...stubs } = Object.fromEntries(
    interfacesOf(typescriptStubs([])),
  );
  const declared = interfacesOf(readFileSync(pathOf("node/tool.d.ts"), "utf8"));
  expect(Object.keys(stubs)).toHaveLength(8);
  for (const [name, members] of Object.entries(stubs)) {
    const own = declared.get(name)?.filter((member) => !member.startsWith("call<"));
    expect({ [name]: members }).toEqual({ [name]: own });
  }
  expect({ ToolArguments, ToolResults }).toEqual({ ToolArguments: [], ToolResults: [] });
  expect(Tools).toEqual([expect.stringMatching(/^call</)]);
});

/** By class: signatures of its methods, and annotations of its attributes. */
const script = `
import ast, json, sys

def typed(annotation):
    is_text = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
    return ast.parse(annotation.value, mode="eval").body if is_text else annotation

def members(each):
    found = {}
    for one in ast.walk(each):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for argument in (*one.args.args, one.args.kwarg):
                if argument is not None:
                    argument.annotation = argument.annotation and typed(argument.annotation)
            returns = one.returns and ast.unparse(typed(one.returns))
            decorators = [ast.unparse(each) for each in one.decorator_list]
            kind = [*decorators, type(one).__name__]
            found[one.name] = [*kind, ast.unparse(one.args), returns]
        elif isinstance(one, ast.AnnAssign):
            found[getattr(one.target, "attr", getattr(one.target, "id", None))] = ast.unparse(typed(one.annotation))
    return found

print(json.dumps([
    {each.name: members(each) for each in ast.parse(text).body if isinstance(each, ast.ClassDef)}
    for text in json.load(sys.stdin)
]))
`;

type Classes = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

test("stubs have the members of the package for Python", () => {
  const files = ["tools", "results"].map((name) =>
    readFileSync(pathOf(`python/secure_tool_runtime/gateway/${name}.py`), "utf8"),
  );
  const input = JSON.stringify([files.join("\n"), pythonStubs([])]);
  const { stdout, stderr } = spawnSync("python3", ["-I", "-c", script], { input });
  expect(stderr.toString()).toBe("");
  const [own, stubs] = JSON.parse(stdout.toString()) as [Classes, Classes];
  const withoutInit = (name: string) => {
    const { __init__: _, ...members } = own[name] ?? {};
    return members;
  };
  const { call: _call, __getattr__: _getattr, ...methods } = withoutInit("Tools");
  expect(stubs["ToolMethods"]).toEqual(methods);
  for (const name of ["SyncTools", "SyncToolName", "ToolCallResult", "ChainResult"])
    expect({ [name]: stubs[name] }).toEqual({ [name]: withoutInit(name) });
  expect(Object.keys(stubs)).toHaveLength(6);
});
