/**
 * The JSON Schema that editors check a manifest with.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { manifestJsonSchema } from "../../../worker/manifest/schema.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { profileNames } from "./fixtures.ts";

describe("the JSON Schema of the manifest", () => {
  const schema = manifestJsonSchema(profileNames);

  test("describes every field of a tool", () => {
    expect(schema).toMatchObject({
      properties: {
        version: { const: 1 },
        tools: {
          additionalProperties: {
            required: ["module", "function"],
            properties: Object.fromEntries(
              [
                "runtime",
                "module",
                "function",
                "package",
                "version",
                "description",
                "timeout_seconds",
                "sandbox_profile",
                "env",
              ].map((field) => [field, { description: expect.any(String) as string }]),
            ),
          },
        },
      },
      required: ["version", "tools"],
    });
  });

  test("offers the profiles that exist", () => {
    expect(JSON.stringify(schema)).toContain(`"enum":${JSON.stringify(profileNames)}`);
  });

  test("lets other workers' keys pass", () => {
    expect(JSON.stringify(schema)).not.toContain('"additionalProperties":false');
  });

  test("is the one that docs/manifest.schema.json offers to editors", () => {
    const offered = readFileSync(
      new URL("../../../docs/manifest.schema.json", import.meta.url),
      "utf8",
    );
    expect(JSON.parse(offered)).toEqual(manifestJsonSchema([...builtInProfiles.keys()]));
  });
});
