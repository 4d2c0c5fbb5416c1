/**
 * The difference between two manifests.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { diffManifests } from "../../../worker/manifest/diff.ts";
import { manifest, packages, tool } from "./fixtures.ts";

describe("the difference between two manifests", () => {
  test("names what was added, removed and changed, sorted", () => {
    const before = manifest(tool("z"), tool("gone"), tool("same"), tool("b", { env: ["A"] }));
    const after = manifest(
      tool("same"),
      tool("z", { timeoutSeconds: 5 }),
      tool("new"),
      tool("b", { env: ["B"] }),
    );
    expect(diffManifests(before, after)).toEqual({
      manifest: after,
      added: ["new"],
      removed: ["gone"],
      changed: ["b", "z"],
    });
  });

  test("is none when the same tools are served in the same way", () => {
    const before = manifest(tool("a"), tool("b", { packages: packages("p") }));
    const after = {
      ...manifest(tool("b", { packages: packages("p") }), tool("a")),
      revision: "other",
    };
    expect(diffManifests(before, after)).toBeUndefined();
  });

  const manifests = fc
    .dictionary(fc.constantFrom("a", "b", "c", "d", "e"), fc.nat(1))
    .map((tools) =>
      manifest(
        ...Object.entries(tools).map(([name, timeoutSeconds]) => tool(name, { timeoutSeconds })),
      ),
    );

  propertyTest.prop([manifests, manifests])(
    "turns the old set of tools into the new",
    (before, after) => {
      const change = diffManifests(before, after);
      const desired = new Set(before.tools.keys());
      for (const name of change?.removed ?? []) expect(desired.delete(name)).toBe(true);
      for (const name of change?.added ?? []) {
        expect(desired.has(name)).toBe(false);
        desired.add(name);
      }
      expect([...desired].sort()).toEqual([...after.tools.keys()].sort());
      for (const [name, entry] of after.tools) {
        const isNews = change !== undefined && [...change.added, ...change.changed].includes(name);
        expect(before.tools.get(name)?.timeoutSeconds === entry.timeoutSeconds).toBe(!isNews);
      }
    },
  );
});
