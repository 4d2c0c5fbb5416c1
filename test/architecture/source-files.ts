/**
 * Reads the source files of a folder and finds their imports and their uses of `process`, by the
 * TypeScript parser.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import ts from "typescript";

export const root = dirname(dirname(import.meta.dirname));

export interface Import {
  /** As written: a relative path, a package or a `node:` module. */
  readonly specifier: string;
  readonly line: number;
  /** Whether it is gone once the types are stripped. */
  readonly isTypeOnly: boolean;
  /** Whether it is loaded when the code gets there, not with the file. */
  readonly isLazy: boolean;
}

export interface SourceFile {
  /** From the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
  /** Members of the global `process` and of the module `node:process` that the file uses. */
  readonly processMembers: readonly { readonly member: string; readonly line: number }[];
  readonly defaultExportLines: readonly number[];
}

/** Parses every file that matches; `patterns` are globs from the project's root. */
export function readSourceFiles(...patterns: readonly string[]): readonly SourceFile[] {
  return readTexts(...patterns).map(({ path, text }) => parseSourceFile(path, text));
}

/** Reads the files that match, in order, which takes a fraction of the time. */
export function readTexts(
  ...patterns: readonly string[]
): readonly Pick<SourceFile, "path" | "text">[] {
  const exclude = (path: string) => /(^|\/)(__pycache__|node_modules)(\/|$)/.test(path);
  return globSync([...patterns], { cwd: root, exclude })
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** Parses one file; only TypeScript and JavaScript have imports here. */
export function parseSourceFile(path: string, text: string): SourceFile {
  const imports: Import[] = [];
  const processMembers: { member: string; line: number }[] = [];
  const defaultExportLines: number[] = [];
  const isScript = /\.(tsx?|mjs|js)$/.test(path);
  const parsed = ts.createSourceFile(path, isScript ? text : "", ts.ScriptTarget.Latest, true);
  const lineOf = (node: ts.Node) =>
    parsed.getLineAndCharacterOfPosition(node.getStart(parsed)).line + 1;

  const visit = (node: ts.Node): void => {
    const found = importOf(node);
    if (found !== undefined) imports.push({ ...found, line: lineOf(node) });
    for (const member of processMembersOf(node))
      processMembers.push({ member, line: lineOf(node) });
    if (isDefaultExport(node)) defaultExportLines.push(lineOf(node));
    ts.forEachChild(node, visit);
  };
  visit(parsed);
  return { path, text, imports, processMembers, defaultExportLines };
}

/**
 * The path from the root that a relative specifier of `file` means; undefined for packages and
 * Node's modules.
 */
export function resolveRelative(file: string, specifier: string): string | undefined {
  return specifier.startsWith(".")
    ? posix.normalize(posix.join(posix.dirname(file), specifier))
    : undefined;
}

/** The package of a specifier: `@scope/name` of `@scope/name/part`. */
export function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** The circles of imports, types included, each as its files, the first one again at the end. */
export function findCycles(files: readonly SourceFile[]): readonly (readonly string[])[] {
  const edges = new Map(files.map((file) => [file.path, filesImported(file)]));
  const done = new Set<string>();
  const cycles: string[][] = [];
  const walk = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at !== -1) cycles.push([...trail.slice(at), path]);
    if (at !== -1 || done.has(path)) return;
    for (const next of edges.get(path) ?? []) walk(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) walk(path, []);
  return cycles;
}

/** The packages that are loaded with a file of some, each with the file that imports it. */
export function packagesLoadedWith(
  start: string,
  files: readonly SourceFile[],
): ReadonlyMap<string, string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const packages = new Map<string, string>();
  const loaded = new Set([start]);
  for (const path of loaded) {
    const imports = byPath.get(path)?.imports ?? [];
    for (const { specifier, isTypeOnly, isLazy } of imports) {
      if (isTypeOnly || isLazy) continue;
      const target = resolveRelative(path, specifier);
      if (target !== undefined) loaded.add(target);
      else if (!specifier.startsWith("node:")) packages.set(packageOf(specifier), path);
    }
  }
  return packages;
}

/** The relative imports of a Python file, as those of scripts are written. */
export function pythonImports(text: string): readonly Import[] {
  return text.split("\n").flatMap((line, index) => {
    const [, dots, module = "", names = ""] =
      /^\s*from (\.+)([\w.]*) import ([\w, ]*)/.exec(line) ?? [];
    if (dots === undefined) return [];
    const folder = dots.length === 1 ? "./" : "../".repeat(dots.length - 1);
    const modules = module === "" ? names.split(/, */) : [module];
    return modules.map((name) => ({
      specifier: `${folder}${name.trim().replaceAll(".", "/")}.py`,
      isTypeOnly: false,
      isLazy: false,
      line: index + 1,
    }));
  });
}

function filesImported(file: SourceFile): readonly string[] {
  return file.imports.flatMap(({ specifier }) => resolveRelative(file.path, specifier) ?? []);
}

function importOf(node: ts.Node): Omit<Import, "line"> | undefined {
  if (ts.isImportDeclaration(node)) {
    const isTypeOnly = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
    return specifierOf(node.moduleSpecifier, isTypeOnly);
  }
  if (ts.isExportDeclaration(node)) return specifierOf(node.moduleSpecifier, node.isTypeOnly);
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return specifierOf(node.argument.literal, true);
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const found = specifierOf(node.arguments[0], false);
    return found && { ...found, isLazy: true };
  }
  return undefined;
}

function specifierOf(
  node: ts.Node | undefined,
  isTypeOnly: boolean,
): Omit<Import, "line"> | undefined {
  return node !== undefined && ts.isStringLiteralLike(node)
    ? { specifier: node.text, isTypeOnly, isLazy: false }
    : undefined;
}

function processMembersOf(node: ts.Node): readonly string[] {
  if (ts.isPropertyAccessExpression(node) && isProcess(node.expression)) return [node.name.text];
  if (
    ts.isElementAccessExpression(node) &&
    isProcess(node.expression) &&
    ts.isStringLiteralLike(node.argumentExpression)
  ) {
    return [node.argumentExpression.text];
  }
  if (ts.isImportDeclaration(node) && ts.isStringLiteralLike(node.moduleSpecifier)) {
    const names = node.importClause?.namedBindings;
    if (!/^(node:)?process$/.test(node.moduleSpecifier.text) || names === undefined) return [];
    if (ts.isNamedImports(names)) {
      return names.elements.map((element) => (element.propertyName ?? element.name).text);
    }
  }
  if (ts.isVariableDeclaration(node) && node.initializer !== undefined) {
    const { name } = node;
    if (!isProcess(node.initializer) || !ts.isObjectBindingPattern(name)) return [];
    return name.elements.map((element) => (element.propertyName ?? element.name).getText());
  }
  return [];
}

function isProcess(node: ts.Node): boolean {
  return ts.isIdentifier(node) && node.text === "process";
}

function isDefaultExport(node: ts.Node): boolean {
  if (ts.isExportAssignment(node)) return true;
  return (
    ts.canHaveModifiers(node) &&
    (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword)
  );
}
