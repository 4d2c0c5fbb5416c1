/**
 * Tools that see nothing of the directory of tools but their own module.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Rig, type RigTool, nodeTool, startRig } from "../../support/workers/rig.ts";

const listing = `import os


def files():
    found = [os.path.join(place, name) for place, _, names in os.walk("/tools") for name in names]
    return {"files": sorted(found)}
`;

const nodeListing = `import fs from "node:fs";
export function files(): object {
  const found = fs.readdirSync("/tools", { recursive: true, withFileTypes: true });
  return {
    files: found.filter((entry) => entry.isFile() && !entry.parentPath.startsWith("/tools/node_modules"))
      .map((entry) => \`\${entry.parentPath}/\${entry.name}\`).sort(),
    compiled: fs.existsSync("/sandbox/compile-cache"),
  };
}
`;

const python = (module: string, more: Partial<RigTool> = {}): RigTool => ({
  module,
  function: "files",
  isolate: true,
  ...more,
});

const tools: Record<string, RigTool> = {
  file: python("listing"),
  whole: python("listing", { isolate: false }),
  package: python("pack"),
  part: python("pack.deep.part"),
  parent_imports: python("greedy.part"),
  sibling: python("pack.relative"),
  gone: python("nowhere"),
  installed: python("this", { function: "print" }),
  node: nodeTool("alone/listing.ts", "files", { isolate: true }),
  node_whole: nodeTool("alone/listing.ts", "files"),
  node_sibling: nodeTool("imports.ts", "run", { isolate: true }),
  node_classic: nodeTool("classic/tool.js", "files", { isolate: true }),
};

/** The tools and their siblings. */
const files = {
  "listing.py": listing,
  "pack/__init__.py": listing,
  "pack/deep/__init__.py": "",
  "pack/deep/part.py": listing,
  "pack/deep/other.py": "SECRET = 1\n",
  "pack/relative.py": "from . import deep\n\n\ndef files():\n    return {}\n",
  "greedy/__init__.py": "from . import other\n",
  "greedy/other.py": "",
  "greedy/part.py": listing,
};
const nodeFiles = {
  "package.json": '{"type": "module"}',
  "imports.ts": 'import "./good.js";\nexport const run = () => ({});\n',
  "alone/listing.ts": nodeListing,
  "alone/other.ts": "",
  "classic/package.json": '{"type": "commonjs"}',
  "classic/tool.js": 'exports.files = () => ({ isClassic: typeof require === "function" });\n',
};

/** By tool: what it sees below /tools. */
const seen: readonly [string, readonly string[]][] = [
  ["file", ["/tools/python/listing.py"]],
  [
    "part",
    [
      "/tools/python/pack/__init__.py",
      "/tools/python/pack/deep/__init__.py",
      "/tools/python/pack/deep/part.py",
    ],
  ],
  [
    "package",
    [
      "/tools/python/pack/__init__.py",
      "/tools/python/pack/deep/__init__.py",
      "/tools/python/pack/deep/other.py",
      "/tools/python/pack/deep/part.py",
      "/tools/python/pack/relative.py",
    ],
  ],
  ["node", ["/tools/node/alone/listing.ts", "/tools/node/package.json"]],
];

const isolatedTool = (mode: number): void => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig({ tools, files, nodeFiles, toolsDirMode: mode });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  test.each(seen)(
    "sees its own module and no other: %s",
    { tags: "promise-S24" },
    async (tool, visible) => {
      const toolResult = { files: visible };
      expect(await rig.call(tool)).toMatchObject({ kind: "success", toolResult });
    },
  );

  test("does not change what others see", { tags: "full" }, async () => {
    const [whole, nodeWhole] = [await rig.call("whole"), await rig.call("node_whole")];
    expect(JSON.stringify(whole)).toContain("/tools/python/pack/deep/other.py");
    expect(JSON.stringify(nodeWhole)).toContain("/tools/node/alone/other.ts");
  });

  test("of Node is the kind of module that its package.json says", async () => {
    expect(await rig.call("node_classic")).toMatchObject({ toolResult: { isClassic: true } });
  });

  test.each([
    [
      "parent_imports",
      /"greedy\.part" cannot be imported: ImportError: cannot import name 'other'/,
    ],
    ["sibling", /"pack\.relative" cannot be imported: ImportError: cannot import name 'deep'/],
    ["gone", /"nowhere" cannot be imported: ModuleNotFoundError: No module named 'nowhere'/],
    ["node_sibling", /"imports\.ts" cannot be imported: .*good\.js/],
  ])("that imports what it does not see is told which: %s", async (tool, message) => {
    expect(await rig.call(tool)).toMatchObject({
      kind: "error",
      code: "IMPORT_ERROR",
      message: expect.stringMatching(message) as string,
    });
  });

  test("may be a module that is installed with the interpreter", async () => {
    const answer = await rig.call("installed");
    expect(answer).toMatchObject({ kind: "error", code: "TOOL_NOT_FOUND" });
  });

  test(
    "of Node gets compiled code, when there is some, and still sees no other module",
    { tags: "full" },
    async () => {
      await vi.waitFor(
        async () => {
          const answer = await rig.call("node");
          expect(answer).toMatchObject({ toolResult: { compiled: true } });
        },
        { timeout: 20_000, interval: 200 },
      );
      expect(await rig.call("node")).toMatchObject({
        toolResult: { files: ["/tools/node/alone/listing.ts", "/tools/node/package.json"] },
      });
    },
  );

  test("runs its present source", async () => {
    await writeFile(
      join(rig.toolsDir, "listing.py"),
      'def files():\n    return {"changed": True}\n',
    );
    expect(await rig.call("file")).toMatchObject({ toolResult: { changed: true } });
    await writeFile(join(rig.toolsDir, "listing.py"), listing);
  });
};

describe("in a directory of tools that sandboxes can read, an isolated tool", () =>
  isolatedTool(0o755));
describe(
  "in a directory of tools that is copied for another user, where the worker is root, an isolated tool",
  { tags: "full" },
  () => isolatedTool(0o700),
);
