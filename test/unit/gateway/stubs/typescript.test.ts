/**
 * TypeScript declarations of tools, compiled.
 */
import ts from "typescript";
import { describe, expect } from "vitest";
import { Catalog, type CatalogEntry } from "../../../../worker/gateway/catalog.ts";
import { maxStubBytes } from "../../../../worker/gateway/stubs/text.ts";
import { typescriptStubs } from "../../../../worker/gateway/stubs/typescript.ts";
import { test } from "../../../support/properties/property.ts";
import { anyEntries, breakouts, manyTools, salesQuery } from "./any-entries.ts";

const options: ts.CompilerOptions = {
  ...{ noEmit: true, strict: true, noLib: true, types: [], target: ts.ScriptTarget.ES2024 },
};
const lib = `
interface Array<T> { readonly [index: number]: T } interface Boolean {} interface Function {}
interface CallableFunction {} interface NewableFunction {} interface IArguments {}
interface Number {} interface Object {} interface RegExp {} interface String {}
interface Iterable<T> { next(): T } interface ReadonlyArray<T> { readonly [index: number]: T }
interface ArrayBuffer {} interface Uint8Array<T> { readonly buffer: T }
interface Promise<T> { then(next: (value: T) => void): void } interface AbortSignal {}
type Readonly<T> = { readonly [Name in keyof T]: T[Name] };
type Record<Key extends string, Value> = { [Name in Key]: Value };
`;

const typedTools = `import type { Tools } from "./tools.js"; declare const tools: Tools;`;

/** What the compiler says about declarations, and a program that uses them. */
function problems(stubs: string, program = "", head = typedTools): readonly string[] {
  const files: Readonly<Record<string, string>> = {
    "lib.d.ts": lib,
    "tools.d.ts": stubs,
    "program.ts": `${head}\n${program}`,
  };
  const host: ts.CompilerHost = {
    fileExists: (name) => Object.hasOwn(files, name),
    readFile: (name) => files[name],
    getSourceFile: (name, target) =>
      Object.hasOwn(files, name) ? ts.createSourceFile(name, files[name]!, target) : undefined,
    getDefaultLibFileName: () => "lib.d.ts",
    getCurrentDirectory: () => "",
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
    writeFile: () => undefined,
  };
  const compiled = ts.createProgram(["lib.d.ts", "program.ts"], options, host);
  return ts
    .getPreEmitDiagnostics(compiled)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

const stubsOf = (entries: readonly CatalogEntry[]): string =>
  typescriptStubs(new Catalog(entries).tools);

/** The names that the declarations declare at their top. */
function declared(stubs: string): readonly string[] {
  const file = ts.createSourceFile("tools.d.ts", stubs, ts.ScriptTarget.ES2024);
  return file.statements.map((one) => (one as ts.InterfaceDeclaration).name.text);
}

const expectedNames = declared(typescriptStubs([]));

describe("declarations", { tags: "promise-G6" }, () => {
  test("type the arguments and results of tools", () => {
    const stubs = stubsOf([salesQuery, { id: "plain" }]);
    const right = `
      tools.sales.query({ region: "West" }, {}).then(({ rows }) => { const some: number = rows[0]!; });
      tools.call("sales:query", { region: "East", limit: 1 }).then(({ rows }) => rows);
      tools.plain({ anything: 1 }).then((result) => result["anything"]);
    `;
    expect(problems(stubs, right)).toEqual([]);
    expect(problems(stubs, `tools.sales.query({ region: "North" });`)).toHaveLength(1);
    expect(problems(stubs, `tools.sales.query({ region: "West", limit: "1" });`)).toHaveLength(1);
    expect(problems(stubs, `tools.call("sales:other", {});`)).toHaveLength(1);
    expect(stubs).toContain("   * Rows of sales.");
  });

  test("have what tools are found and described by", () => {
    const right = `
      tools.search("words", { limit: 1 }).then((found) => { const id: string = found[0]!.id; });
      tools.chain<{ rows: number }>([] as any).then(({ rows }) => rows);
      tools.loadArtifact("a.csv", { version: 1 }).then(({ buffer }) => buffer);
    `;
    expect(problems(stubsOf([salesQuery]), right)).toEqual([]);
    expect(problems(stubsOf([salesQuery]), `tools.describe(1);`)).toHaveLength(1);
  });

  test("for programs have what these find without an import", () => {
    const program = `
      const region = inputs["region"];
      display({ region });
      tools.call("sales:query", { region: "West" });
      __out = { region };
    `;
    const head = `import type {} from "./tools.js";`;
    const { tools } = new Catalog([salesQuery]);
    const ofPrograms = typescriptStubs(tools, { forPrograms: true });
    expect(problems(ofPrograms, program, head)).toEqual([]);
    expect(problems(ofPrograms, `tools.call("no:such", {});`, head)).toHaveLength(1);
    expect(problems(typescriptStubs(tools), program, head)).toHaveLength(4);
  });

  test.prop([anyEntries], { numRuns: 25 })("of any tools compile", (entries) => {
    const stubs = stubsOf(entries);
    expect(problems(stubs)).toEqual([]);
    expect(declared(stubs)).toEqual(expectedNames);
  });

  test.each(breakouts)("of %j keep it where it is", (text) => {
    const member = { const: text, description: text };
    const schema = { type: "object", properties: { [text]: member }, additionalProperties: member };
    const stubs = stubsOf([
      { id: "a:b", description: text, notes: text, parameters: schema, returns: schema },
    ]);
    expect(problems(stubs)).toEqual([]);
    expect(declared(stubs)).toEqual(expectedNames);
  });

  test("of tools with the names of others compile", () => {
    const ids = ["call", "then", "sales", "sales:call", "search:a", "constructor:new", "__proto__"];
    const stubs = stubsOf(ids.map((id) => ({ id })));
    const calls = ids.map((id) => `tools.call("${id}", {});`).join("\n");
    expect(problems(stubs, calls)).toEqual([]);
    expect(problems(stubs, `tools.sales.call({});`)).toEqual([]);
  });

  test("of tools whose names are words of the language compile", () => {
    const words =
      "abstract accessor any as asserts async await class declare default delete enum " +
      "export extends false function get import in infer is keyof let module namespace never new " +
      "null of override private protected public readonly set static super this throw true type " +
      "typeof undefined unique unknown using var void with yield";
    const entries = words.split(" ").flatMap((word) => {
      const parameters = { type: "object", properties: { [word]: {} }, required: [word] };
      return [
        { id: `${word}:${word}`, parameters },
        { id: `${word}2:${word}` },
        { id: `${word}3` },
      ];
    });
    const calls = words.split(" ").map((word) => `tools["${word}"]["${word}"]({ "${word}": 1 });`);
    expect(problems(stubsOf(entries), calls.join("\n"))).toEqual([]);
  });

  test("of more tools than fit say how many are left", { tags: "full" }, () => {
    const stubs = stubsOf(manyTools);
    expect(Buffer.byteLength(stubs)).toBeLessThanOrEqual(maxStubBytes);
    expect(Buffer.byteLength(stubs)).toBeGreaterThan(maxStubBytes / 2);
    expect(problems(stubs)).toEqual([]);
    const left = Number(/^\/\/ (\d+) more tools do not fit/m.exec(stubs)?.[1]);
    expect(stubs.match(/Promise<ToolResults\["/g)).toHaveLength(manyTools.length - left);
  });
});
