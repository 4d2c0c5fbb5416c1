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

  const fieldsOf = (...names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, { description: expect.any(String) as string }]));
  const always = [
    ...["description", "timeout_seconds", "sandbox_profile", "limits", "network", "isolate"],
    ...["mounts", "devices", "idempotent", "queue", "start", "warm", "env"],
  ];
  const common = [
    ...always,
    ...["instructions", "parameters", "output_schema", "config_schema", "artifact_params"],
    ...["validate", "coerce"],
  ];

  test("describes every field of a tool, by language", () => {
    expect(schema).toMatchObject({
      properties: {
        version: { anyOf: [{ const: 1 }, { type: "null" }] },
        tools: {
          additionalProperties: {
            anyOf: [
              {
                required: ["module"],
                properties: fieldsOf(
                  ...["runtime", "module", "function", "class_name", "tools", "package", "version"],
                  ...common,
                ),
              },
              {
                required: ["runtime", "module", "function"],
                properties: fieldsOf("runtime", "module", "function", ...common),
              },
              {
                required: ["executable"],
                properties: fieldsOf("runtime", "executable", "tool_dir", "tools", ...common),
              },
              ...["python", "node", "runtime"].map((own) => ({
                required: ["runtime"],
                properties: fieldsOf("runtime", "languages", own, "instructions", ...always),
              })),
            ],
          },
        },
      },
      required: ["tools"],
    });
  });

  test("offers the profiles that exist, and accepts an operator's own", () => {
    const offered = `{"anyOf":[{"type":"string","enum":${JSON.stringify(profileNames)}},{"type":"string","pattern":`;
    expect(JSON.stringify(schema)).toContain(offered);
  });

  test("lets other workers' keys pass, but none that is misspelled inside a field", () => {
    expect(schema).not.toHaveProperty("additionalProperties");
    const tools = (
      schema as { properties: { tools: { additionalProperties: { anyOf: object[] } } } }
    ).properties.tools.additionalProperties.anyOf;
    expect(tools).toHaveLength(6);
    for (const tool of tools) {
      expect(tool).not.toHaveProperty("additionalProperties");
      expect(tool).toHaveProperty("properties.limits.anyOf[0].additionalProperties", false);
    }
  });

  test("is the one that docs/manifest.schema.json offers to editors", () => {
    const offered = readFileSync(
      new URL("../../../docs/manifest.schema.json", import.meta.url),
      "utf8",
    );
    expect(JSON.parse(offered)).toEqual(manifestJsonSchema([...builtInProfiles.keys()]));
  });
});
