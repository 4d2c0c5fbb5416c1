/**
 * What `secure-tool-runtime/runtime` and its `testing` export: these values, and each type that
 * their signatures name.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import * as entry from "../../../worker/runtime.ts";
import * as testing from "../../../worker/runtime/testing.ts";
import { root } from "../../architecture/source-files.ts";

const entryPath = join(root, "worker/runtime.ts");
const testingPath = join(root, "worker/runtime/testing.ts");

test("exports these values", () => {
  expect(Object.keys(testing).sort()).toEqual(["backendContract", "gatewayContract"]);
  expect(Object.keys(entry).sort()).toEqual([
    ...["ActivityError", "EngineError", "GatewayError", "Runtime", "RuntimeError", "codeEngine"],
    ...["createFunctionGateway", "declaredBackend", "defineBackend", "openBubblewrap"],
    ...["openContainerd", "openDocker", "openGvisor", "openKata", "openRemote"],
    ...["openUnsafeHost", "openWasm", "runtimeProfiles", "serveRuntime", "temporalActivity"],
    "unsafeHost",
  ]);
});

test("exports every type that the signatures of its exports name", () => {
  const exported = new Map([...exportsOf(entryPath), ...exportsOf(testingPath)]);
  expect(exported.get("ToolGateway")).toBe(join(root, "worker/gateway/gateway.ts"));
  const missing = [...new Set(exported.values())].flatMap((path) => {
    const file = parse(path);
    const own = namesOf(file);
    return file.statements.filter(isExportedDeclaration).flatMap((declaration) => {
      const name = declaration.name?.text ?? "";
      if (exported.get(name) !== path) return [];
      return namedTypes(declaration)
        .filter((type) => own.has(type) && !exported.has(type))
        .map((type) => `${name} names ${type}`);
    });
  });
  expect(missing).toEqual([]);
});

function parse(path: string): ts.SourceFile {
  return ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
}

/** The file of each exported name. */
function exportsOf(path: string): ReadonlyMap<string, string> {
  const file = parse(path);
  const names = new Map<string, string>();
  for (const statement of file.statements) {
    if (isExportedDeclaration(statement)) names.set(statement.name?.text ?? "", file.fileName);
    if (!ts.isExportDeclaration(statement) || !statement.moduleSpecifier) continue;
    const { text } = statement.moduleSpecifier as ts.StringLiteral;
    for (const { name } of (statement.exportClause as ts.NamedExports).elements)
      names.set(name.text, join(dirname(file.fileName), text));
  }
  return names;
}

type Declaration =
  ts.ClassDeclaration | ts.InterfaceDeclaration | ts.FunctionDeclaration | ts.TypeAliasDeclaration;

function isExportedDeclaration(node: ts.Node): node is Declaration {
  const isDeclaration =
    ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isFunctionDeclaration(node) ||
    ts.isTypeAliasDeclaration(node);
  const isExported = ({ kind }: ts.ModifierLike) => kind === ts.SyntaxKind.ExportKeyword;
  return isDeclaration && node.modifiers?.some(isExported) === true;
}

/** What a file imports or declares: other names are the language's, or of type parameters. */
function namesOf(file: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>();
  for (const statement of file.statements) {
    if (ts.isImportDeclaration(statement)) {
      const bindings = statement.importClause?.namedBindings;
      if (bindings !== undefined && ts.isNamedImports(bindings))
        for (const { name } of bindings.elements) names.add(name.text);
    } else if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
      names.add(statement.name.text);
    }
  }
  return names;
}

/** The types in a declaration that its users see; an alias stands for itself. */
function namedTypes(declaration: ts.Node): readonly string[] {
  const names: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node) || ts.isPrivateIdentifier(node)) return;
    if (ts.isClassElement(node) && node.name && ts.isPrivateIdentifier(node.name)) return;
    if (ts.isTypeReferenceNode(node) && ts.isIdentifier(node.typeName))
      names.push(node.typeName.text);
    if (ts.isExpressionWithTypeArguments(node) && ts.isIdentifier(node.expression))
      names.push(node.expression.text);
    ts.forEachChild(node, visit);
  };
  if (!ts.isTypeAliasDeclaration(declaration)) visit(declaration);
  return names;
}
