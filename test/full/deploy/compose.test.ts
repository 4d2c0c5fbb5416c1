/**
 * deploy/compose.yaml against the schema of the Compose specification.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { goModuleFiles } from "../../support/go-program.ts";
import { pypiPackages, python } from "../../support/pypi-packages.ts";
import { slowPlace } from "../../support/sandboxes/quick-place.ts";

const run = promisify(execFile);
const text = readFileSync(join(import.meta.dirname, "../../../deploy/compose.yaml"), "utf8");
const validation = [
  "import json, sys, jsonschema",
  "schema, instance = (json.load(open(path)) for path in sys.argv[1:])",
  "for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(instance):",
  "    print(error.json_path, error.message)",
].join("\n");

/** A line for each error of a file. */
async function errorsOf(context: TestContext, compose: string): Promise<string> {
  const module = ["github.com/compose-spec/compose-go/v2", "v2.16.2", "schema"] as const;
  const schemas = await goModuleFiles(context, ...module);
  const PYTHONPATH = await pypiPackages(context, ["jsonschema==4.25.1"]);
  const directory = await mkdtemp(join(slowPlace, "str-test-compose-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const instance = join(directory, "compose.json");
  await writeFile(instance, JSON.stringify(parse(compose, { merge: true })));
  const argv = ["-c", validation, join(schemas, "compose-spec.json"), instance];
  return (await run(python, argv, { env: { PYTHONPATH } })).stdout;
}

test("Compose's schema knows every member of the file", async (context) => {
  expect(await errorsOf(context, text)).toBe("");
  const misspelled = text.replaceAll("cap_drop:", "cap_drops:");
  expect(await errorsOf(context, misspelled)).toContain("cap_drops");
});
