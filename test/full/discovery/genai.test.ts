/**
 * Schemas for agents, by the class that Python agents build of them.
 *
 * @module-tag full
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { fc } from "../../support/properties/property.ts";
import { expect, test } from "vitest";
import { reduceParameters, reduceSchema } from "../../../worker/protocol/discovery/agent-schema.ts";
import { pypiPackages, python } from "../../support/pypi-packages.ts";
import { anySchema } from "../../unit/protocol/discovery/any-schema.ts";

const script = fileURLToPath(new URL("../../fixtures/agents/genai_schemas.py", import.meta.url));
const count = 1_000;

function judge(packages: string, schemas: readonly object[]): string {
  const input = schemas.map((schema) => JSON.stringify(schema)).join("\n");
  return execFileSync(python, [script], { input, env: { PYTHONPATH: packages } }).toString();
}

test.for(["1.0.0", "3.6.1"])(
  "google-genai %s accepts every reduction, and not every schema",
  { timeout: 600_000 },
  async (version, context) => {
    const packages = await pypiPackages(context, [`google-genai==${version}`]);
    const schemas = fc.sample(anySchema, count);
    const reduced = schemas.flatMap((schema) => [reduceSchema(schema), reduceParameters(schema)]);
    expect(judge(packages, reduced)).toBe(`accepted: ${2 * count}\n`);
    expect(judge(packages, schemas)).toContain("refused: ");
  },
);
