/**
 * Which toolsets join the worker's manifest.
 */
import { expect, test } from "vitest";
import { withToolsets } from "../../../../worker/manifest/toolsets/merge.ts";
import { manifest, parse, tool } from "../fixtures.ts";

test("a toolset with a tool that the manifest has of other workers is left out", () => {
  const file = parse(
    "version: 1\ntools:\n  t: {module: m, function: f, gateway: {remote: [kit__weather]}}\n",
  );
  const part = (name: string, toolName: string) => ({
    ...{ name, revision: "1", warnings: [] },
    manifest: manifest(tool(toolName)),
  });
  const merged = withToolsets({ manifest: file.manifest, warnings: [] }, [
    part("kit", "kit__weather"),
    part("other", "other__run"),
  ]);
  expect([...merged.manifest.tools.keys()]).toEqual(["t", "other__run"]);
  expect(merged.warnings).toEqual([
    'toolset "kit" is left out: the manifest lists "kit__weather" as a tool of other workers',
  ]);
});
