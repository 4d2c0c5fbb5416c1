/**
 * What the example tools say of themselves. `vitest --update` records it anew.
 */
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { writeDescription } from "../../../worker/descriptions/answer.ts";
import { openDescribing } from "../../support/described/describing.ts";

const project = join(import.meta.dirname, "../../..");
const examples = join(project, "examples/tools");
const golden = join(project, "test/fixtures/golden/example-descriptions.json");

test(
  "each example tool is described as recorded, by schemas that can be compiled",
  { tags: "full" },
  async () => {
    await using opened = await openDescribing({
      manifestPath: join(examples, "manifest.yaml"),
      pythonDir: join(examples, "python"),
      nodeDir: join(examples, "node"),
      executableDir: join(examples, "executable"),
    });
    const { descriptions, tools } = opened;
    const described = await Promise.all(
      Array.from(tools, async ([name, tool]) => {
        const found = await descriptions.describe(tool, AbortSignal.timeout(30_000));
        return [name, writeDescription(found)] as const;
      }),
    );
    const text = `${JSON.stringify(Object.fromEntries(described), undefined, 2)}\n`;
    await expect(text).toMatchFileSnapshot(golden);
    const ajv = new Ajv2020({ strict: false });
    for (const [, { parameters, result }] of described) {
      ajv.compile(parameters as object);
      if (result !== undefined) ajv.compile(result as object);
    }
  },
);
