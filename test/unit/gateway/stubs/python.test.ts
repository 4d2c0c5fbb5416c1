/**
 * Python stubs of tools, parsed by Python.
 */
import { spawnSync } from "node:child_process";
import { describe, expect } from "vitest";
import { Catalog, type CatalogEntry } from "../../../../worker/gateway/catalog.ts";
import { pythonStubs } from "../../../../worker/gateway/stubs/python.ts";
import { maxStubBytes } from "../../../../worker/gateway/stubs/text.ts";
import { fc, test } from "../../../support/properties/property.ts";
import { anyEntries, breakouts, manyTools, salesQuery } from "./any-entries.ts";

/** The statements of each stub: imports, types, classes, and one annotation. */
const script = `
import ast, json, sys, warnings
warnings.simplefilter("error")
for stub in json.load(sys.stdin):
    parsed = ast.parse(stub)
    compile(stub, "tools.pyi", "exec")
    print(" ".join(type(one).__name__ for one in parsed.body))
`;

/** Parses all at once: Python takes longer to start. */
function statements(stubs: readonly string[]): readonly string[] {
  const input = JSON.stringify(stubs);
  const { stdout, stderr } = spawnSync("python3", ["-I", "-c", script], { input });
  expect(stderr.toString()).toBe("");
  return stdout.toString().trimEnd().split("\n");
}

const stubsOf = (entries: readonly CatalogEntry[]): string =>
  pythonStubs(new Catalog(entries).tools);
const expected = /^ImportFrom ImportFrom( Assign)*( ClassDef)+ AnnAssign$/;
/** Two types, five classes of every stub, a namespace and its tools. */
const ofNamespace = `ImportFrom ImportFrom Assign Assign${" ClassDef".repeat(7)} AnnAssign`;

describe("stubs", { tags: "promise-G6" }, () => {
  test("type the arguments and results of tools", () => {
    const stubs = stubsOf([salesQuery, { id: "plain", description: "Plain" }, { id: "a-b:c" }]);
    expect(statements([stubs])).toEqual([ofNamespace]);
    const limit = "limit: int | None = ...";
    const region = `region: Literal["West"] | Literal["East"]`;
    expect(stubs).toContain(`async def query(self, *, ${region}, ${limit}) -> _T3_1:`);
    expect(stubs).toContain(`"rows": list[float]`);
    expect(stubs).toContain(`    async def plain(self, **__rest: Any) -> dict[str, Any]:`);
    expect(stubs).toContain(`Literal["a-b:c"]`);
    expect(stubs).not.toContain("async def c(");
  });

  test("for programs have what these find without an import", () => {
    const stubs = pythonStubs([], { forPrograms: true });
    expect(statements([stubs])[0]).toMatch(/ ClassDef AnnAssign AnnAssign FunctionDef$/);
    expect(stubs).toMatch(/^inputs: dict\[str, Any\]\ndef display\(value: object\) -> None: /m);
  });

  test("of any tools are Python, and nothing but stubs", () => {
    const samples = fc.sample(anyEntries, 60).map(stubsOf);
    for (const [index, kinds] of statements(samples).entries()) {
      expect(kinds, samples[index]).toMatch(expected);
    }
  });

  test("of tools with the names of others leave these to call", () => {
    const ids = ["call", "sales", "sales:call", "search:a", "a:class", "a:__x", "__y"];
    const stubs = stubsOf(ids.map((id) => ({ id })));
    const ofTools = stubs.slice(stubs.indexOf("class Tools("));
    const methods = [...ofTools.matchAll(/async def (\w+)\(/g)].map(([, name]) => name);
    expect(methods.filter((name) => name !== "call")).toEqual([]);
    expect(stubs.match(/tool: Literal\["/g)).toHaveLength(ids.length);
    expect(stubs).not.toMatch(/^    (search|a):/m);
  });

  test("keep hostile texts where they are", () => {
    const stubs = breakouts.map((text) => {
      const properties = { [text]: { const: text, description: text } };
      const schema = { type: "object", properties };
      return stubsOf([
        { id: "a:b", description: text, notes: text, parameters: schema, returns: schema },
      ]);
    });
    for (const kinds of statements(stubs)) {
      expect(kinds).toBe(ofNamespace);
    }
  });

  test("of more tools than fit say how many are left", { tags: "full" }, () => {
    const stubs = stubsOf(manyTools);
    expect(Buffer.byteLength(stubs)).toBeLessThanOrEqual(maxStubBytes);
    expect(Buffer.byteLength(stubs)).toBeGreaterThan(maxStubBytes / 2);
    expect(statements([stubs])).toEqual([expect.stringMatching(expected)]);
    const left = Number(/^# (\d+) more tools do not fit/m.exec(stubs)?.[1]);
    expect(stubs.match(/tool: Literal\["/g)).toHaveLength(manyTools.length - left);
  });
});
