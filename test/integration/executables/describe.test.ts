/**
 * What executables say of their tools, in sandboxes.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type TestContext, expect, test } from "vitest";
import { describeTool } from "../../../worker/descriptions/describe.ts";
import { openExecutableRunner } from "../../../worker/runners/executable.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { newId } from "../../../worker/support/ids.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import { never, scratchDirectory, sharedBackends } from "../sandbox/sandbox-host.ts";

const sharedBackend = sharedBackends();

/** What a script says of a tool. */
async function described(context: TestContext, script: string, name: string, config?: JsonObject) {
  const backend = await sharedBackend(context);
  const toolsDir = join(await scratchDirectory(backend), newId());
  await mkdir(toolsDir);
  await writeFile(join(toolsDir, "tool"), script, { mode: 0o755 });
  await using runner = openExecutableRunner({ toolsDir, backend, workerEnvironment: {} });
  const parts = {
    backend,
    runners: new Map([["executable" as const, runner]]),
    hostAccess: { grant: () => Promise.resolve({ mounts: [], devices: [] }) },
    networkOf: () => undefined,
  };
  const callable = { kind: "program", name } as const;
  const entry = tool(name, { runtime: "executable", module: "tool", callable });
  const profile = builtInProfiles.get("standard")!;
  const toolConfig = config && { toolConfig: config };
  return describeTool(parts, { tool: entry, profile, ...toolConfig }, never);
}

const printing = (document: object): string =>
  `#!/bin/sh\n[ "$1" = --schema ] || exit 9\ncat <<'END'\n${JSON.stringify(document)}\nEND\n`;

test("the example describes itself, under whatever name", async (context) => {
  const path = new URL("../../../examples/tools/executable/sha256", import.meta.url);
  const script = await readFile(fileURLToPath(path), "utf8");
  expect(await described(context, script, "digest")).toEqual({
    description: "SHA-256 of a file",
    parameters: expect.objectContaining({ type: "object", required: ["file"] }),
    result: undefined,
    config: undefined,
    artifactParameters: new Map([["file", { isList: false, isOptional: false }]]),
  });
});

test("a program may have several tools, with configurations", async (context) => {
  const fields = [
    { key: "token", type: "string", description: "Secret", required: true, secret: true },
    { key: "retries", type: "integer", default: 3, options: [1, 3] },
    { no: "key" },
  ];
  const script = printing({
    tools: {
      bare: { auth: { anything: 1 }, artifact_params: { files: { is_list: true } } },
      configured: { description: "x", config_schema: fields, timeout_seconds: 5 },
    },
  });
  const nothing = { description: undefined, parameters: undefined, result: undefined };
  expect(await described(context, script, "bare")).toEqual({
    ...nothing,
    config: undefined,
    artifactParameters: new Map([["files", { isList: true, isOptional: false }]]),
  });
  expect((await described(context, script, "configured")).config).toEqual({
    type: "object",
    properties: {
      token: { type: "string", description: "Secret" },
      retries: { type: "integer", default: 3, examples: [1, 3] },
    },
    required: ["token"],
  });
  await expect(described(context, script, "other")).rejects.toMatchObject({
    code: "TOOL_NOT_FOUND",
    message: 'The tool\'s program has no tool "other"; its tools: bare, configured',
  });
});

test("a description may depend on the configuration", async (context) => {
  const script = `#!/bin/sh
[ "$2" = --config ] && printf '{"tools": {"t": {"parameters": %s}}}' "$(cat "$3")"
`;
  const config = { properties: { source: { enum: ["a", "b"] } } };
  expect((await described(context, script, "t", config)).parameters).toEqual(config);
});

const failing = "The tool's program does not describe itself: ";
const manyTools = Object.fromEntries(
  ["x".repeat(70), ..."abcdefghijk"].map((name) => [name, {}] as const),
);
const fewNames = `no tool "t"; its tools: ${"x".repeat(60)}…, a, b, c, d, e, f, g, h, i, 2 more`;
const tooMuch = "The tool's program describes itself in more than 1048576 bytes";

test.for<[how: string, script: string, code: string, message: string]>([
  [
    "fails",
    "#!/bin/sh\necho 'no /a/b/schema' >&2\nexit 4\n",
    "EXECUTION_ERROR",
    `${failing}exit code 4`,
  ],
  ["prints text", "#!/bin/sh\necho hello\n", "EXECUTION_ERROR", `${failing}it prints no JSON: `],
  ["prints too much", "#!/bin/sh\nexec yes\n", "RESOURCE_EXHAUSTED", tooMuch],
  ["has many others", printing({ tools: manyTools }), "TOOL_NOT_FOUND", fewNames],
  ["has a list", printing({ tools: [] }), "EXECUTION_ERROR", `${failing}it prints no object with`],
])("one that %s has no description", async ([, script, code, message], context) => {
  await expect(described(context, script, "t")).rejects.toMatchObject({
    name: "InvocationError",
    code,
    message: expect.stringContaining(message),
  });
});
