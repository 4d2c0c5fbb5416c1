/**
 * The tools that other tools may call, and when they are looked up again.
 */
import { expect, test } from "vitest";
import { describedByManifest } from "../../../worker/discovery/given.ts";
import type { CatalogEntry } from "../../../worker/gateway/catalog.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { CallableTools } from "../../../worker/runtime/callable-tools.ts";
import { tool } from "../manifest/fixtures.ts";

function callable(name: string): ToolEntry {
  const entry = tool(name);
  const allowedCallers = new Set(["programmatic"] as const);
  return { ...entry, catalog: { ...entry.catalog, allowedCallers } };
}

test("a snapshot is the same until tools, descriptions or tools of others change", () => {
  let tools = new Map([["adds", callable("adds")]]);
  let described = [...tools.values()].map((each) => ({
    tool: each,
    description: describedByManifest(each),
  }));
  let remote: readonly CatalogEntry[] = [];
  const callableTools = new CallableTools({
    tools: () => tools,
    described: () => described,
    remote: () => remote,
  });
  const ids = (): readonly string[] => callableTools.snapshot().catalog.ids;
  const first = callableTools.snapshot();
  expect(callableTools.snapshot()).toBe(first);
  tools = new Map([...tools, ["private", tool("private")], ["says", callable("says")]]);
  expect(ids()).toEqual(["adds", "says"]);
  remote = [{ id: "weather" }, { id: "says", description: "of another worker" }];
  expect(ids()).toEqual(["adds", "says", "weather"]);
  expect([...callableTools.snapshot().remote]).toEqual(["weather"]);
  described = described.map((each) => ({
    ...each,
    description: { ...each.description, description: "Adds prices" },
  }));
  expect(callableTools.snapshot().catalog.get("adds")?.summary().shortDescription).toBe(
    "Adds prices",
  );
});
