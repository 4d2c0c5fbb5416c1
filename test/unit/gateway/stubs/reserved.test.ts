/**
 * Stubs against the objects of the runners: what these have themselves is no tool.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { tools } from "../../../../tool-runner/node/tool.js";
import { Catalog } from "../../../../worker/gateway/catalog.ts";
import { pythonStubs } from "../../../../worker/gateway/stubs/python.ts";
import { typescriptStubs } from "../../../../worker/gateway/stubs/typescript.ts";

const runnerDir = fileURLToPath(new URL("../../../../tool-runner/python", import.meta.url));
const script = `
import json, sys
sys.path.insert(0, sys.argv[1])
from secure_tool_runtime import tools
print(json.dumps([name for name in dir(tools) if name.isidentifier()]))
`;

/** A namespace, a tool without one, and a tool in one, by each name. */
function catalogOf(names: readonly string[]): Catalog {
  return new Catalog(
    names.flatMap((name) => [`${name}:a`, `${name}2:${name}`, name]).map((id) => ({ id })),
  );
}

describe("stubs", () => {
  test("of TypeScript have no member that the runner's object does not call", () => {
    const own = Reflect.ownKeys(tools).map(String);
    expect(own).toContain("stepResultsOf");
    const objects = ["then", "toJSON", ...Object.getOwnPropertyNames(Object.prototype)];
    const all = typescriptStubs(catalogOf([...own, ...objects]).tools);
    const stubs = all.slice(all.indexOf("export interface ToolArguments"));
    for (const name of own) {
      expect(stubs).not.toMatch(new RegExp(`^  readonly "?${name}"?:`, "m"));
      expect(stubs).not.toMatch(new RegExp(`^  "?${name}"?\\(`, "m"));
      expect(stubs).toMatch(new RegExp(`^    ${name}\\(args: ToolArguments`, "m"));
    }
    for (const name of objects) {
      expect(Reflect.get(tools, name)).toBe(Reflect.get({}, name));
      expect(stubs).not.toMatch(new RegExp(`^  readonly "?${name}"?:`, "m"));
      expect(stubs).not.toMatch(new RegExp(`^ +"?${name}"?\\(`, "m"));
      expect(stubs).toContain(`  "${name}": Record<string, unknown>;`);
    }
  });

  test("of Python have no member that the runner's object does not call", () => {
    const { stdout } = spawnSync("python3", ["-I", "-c", script, runnerDir]);
    const own = JSON.parse(stdout.toString()) as readonly string[];
    expect(own).toContain("load_artifact");
    const stubs = pythonStubs(catalogOf([...own, "_private"]).tools);
    for (const name of own) expect(stubs).not.toMatch(new RegExp(`^    ${name}:`, "m"));
    const methods = [...stubs.matchAll(/^class (\w+).*|^ +async def (\w+)\(/gm)];
    const start = methods.findIndex(([, name]) => name === "Tools");
    const atTop = methods.slice(start + 1).map(([, , name]) => name);
    expect(new Set(atTop)).toEqual(new Set(["call"]));
    expect(stubs).not.toContain("def _private");
    expect(stubs).toContain(`Literal["_private"]`);
  });
});
