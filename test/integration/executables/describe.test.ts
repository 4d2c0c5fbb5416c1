/**
 * What executables say of their tools, in sandboxes.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type TestContext, expect, test } from "vitest";
import { openExecutableRunner } from "../../../worker/runners/executable.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import { never, scratchDirectory, sharedBackends } from "../sandbox/sandbox-host.ts";

const sharedBackend = sharedBackends();

/** What a script says of its tools. */
async function described(context: TestContext, script: string, config?: JsonObject) {
  const backend = await sharedBackend(context);
  const toolsDir = join(await scratchDirectory(backend), "programs");
  await mkdir(toolsDir);
  await writeFile(join(toolsDir, "tool"), script, { mode: 0o755 });
  await using runner = openExecutableRunner({ toolsDir, backend, workerEnvironment: {} });
  const entry = tool("tool", { runtime: "executable", module: "tool" });
  return runner.describe(entry, config, never);
}

const printing = (document: object): string =>
  `#!/bin/sh\n[ "$1" = --schema ] || exit 9\ncat <<'END'\n${JSON.stringify(document)}\nEND\n`;

test("the example describes itself", async (context) => {
  const path = new URL("../../../examples/tools/executable/sha256", import.meta.url);
  const tools = await described(context, await readFile(fileURLToPath(path), "utf8"));
  expect([...tools]).toEqual([
    [
      "sha256",
      {
        description: "SHA-256 of a file",
        parameters: expect.objectContaining({ type: "object", required: ["file"] }),
        result: undefined,
        config: undefined,
        artifactParameters: new Map([["file", { isList: false, isOptional: false }]]),
      },
    ],
  ]);
});

test("a program may have several tools, with configurations", async (context) => {
  const fields = [
    { key: "token", type: "string", description: "Secret", required: true, secret: true },
    { key: "retries", type: "integer", default: 3, options: [1, 3] },
  ];
  const tools = await described(
    context,
    printing({
      tools: {
        bare: { auth: { anything: 1 }, artifact_params: { files: { is_list: true } } },
        configured: { description: "x", config_schema: fields, timeout_seconds: 5 },
      },
    }),
  );
  const nothing = { description: undefined, parameters: undefined, result: undefined };
  expect(tools.get("bare")).toEqual({
    ...nothing,
    config: undefined,
    artifactParameters: new Map([["files", { isList: true, isOptional: false }]]),
  });
  expect(tools.get("configured")?.config).toEqual({
    type: "object",
    properties: {
      token: { type: "string", description: "Secret" },
      retries: { type: "integer", default: 3, examples: [1, 3] },
    },
    required: ["token"],
  });
});

test("a description may depend on the configuration", async (context) => {
  const script = `#!/bin/sh
[ "$2" = --config ] && printf '{"tools": {"t": {"parameters": %s}}}' "$(cat "$3")"
`;
  const config = { sources: ["a", "b"] };
  expect((await described(context, script, config)).get("t")?.parameters).toEqual(config);
});

test.each([
  [
    "fails",
    "#!/bin/sh\necho 'no schema here' >&2\nexit 4\n",
    "tool --schema failed: no schema here",
  ],
  ["prints text", "#!/bin/sh\necho hello\n", /^tool --schema prints no JSON: /],
  ["prints too much", "#!/bin/sh\nexec yes\n", "tool describes itself in more than 1048576 bytes"],
  [
    "has a list",
    printing({ tools: [] }),
    /^tool describes its tools otherwise than agreed: --schema\.tools/,
  ],
] as const)("one that %s has no description", async (_, script, message) => {
  const context = { skip: () => undefined } as unknown as TestContext;
  const failing = described(context, script);
  await expect(failing).rejects.toThrow(message);
  await expect(failing).rejects.toMatchObject({ name: "SandboxError" });
});
