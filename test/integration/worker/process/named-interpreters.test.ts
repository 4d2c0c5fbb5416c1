/**
 * Tools of a manifest that name their interpreter, in a whole worker.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { type RigTool, nodeTool, startRig } from "../../../support/workers/rig.ts";
import { temporaryDirectory } from "../../sandbox/sandbox-host.ts";

const run = promisify(execFile);

test("tools run by the interpreters that the operator allows, and no other program runs", async () => {
  const base = await temporaryDirectory(onTestFinished, "/var/tmp");
  const venv = join(base, "venv");
  await run("/usr/bin/python3", ["-m", "venv", "--without-pip", venv]);
  const look: RigTool = { module: "look", function: "run" };
  await using rig = await startRig({
    tools: {
      usual: look,
      named: { ...look, python: "science" },
      by_path: { ...look, python: join(venv, "bin/python") },
      unknown: { ...look, python: "3.99" },
      not_allowed: { ...look, python: "/usr/bin/env" },
      node: nodeTool("look.js", "run", { node: process.execPath }),
      no_node: nodeTool("look.js", "run", { node: "/usr/bin/env" }),
    },
    files: { "look.py": "import sys\n\n\ndef run():\n    return {'prefix': sys.prefix}\n" },
    nodeFiles: { "look.js": "export const run = () => ({ version: process.version });\n" },
    environment: { SANDBOX_PYTHONS: `science=${venv}/bin/python` },
  });
  const results = await Promise.all(
    ["usual", "named", "by_path", "node", "unknown", "not_allowed", "no_node"].map((tool) =>
      rig.call(tool),
    ),
  );
  const refused = {
    kind: "error",
    code: "TOOL_NOT_AVAILABLE",
    message: expect.stringContaining("the worker has no such interpreter"),
  };
  expect(results).toMatchObject([
    { toolResult: { prefix: "/usr" } },
    { toolResult: { prefix: venv } },
    { toolResult: { prefix: venv } },
    { toolResult: { version: process.version } },
    refused,
    refused,
    refused,
  ]);
  const log = rig.logLines.join("\n");
  expect(log).toContain('interpreter \\"3.99\\" is not allowed: SANDBOX_PYTHONS allows science');
  expect(log).toContain('interpreter \\"/usr/bin/env\\" is not allowed: SANDBOX_NODES is not set');
});
