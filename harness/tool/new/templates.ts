/**
 * The text of a new tool and of its test: small, complete, and about the same thing in each
 * language and shape.
 */
import { stringify } from "yaml";
import type { Runtime } from "../../../worker/manifest/manifest.ts";
import type { ToolNames } from "./names.ts";
import type { Shape } from "./shapes.ts";

/** Arguments that every new tool understands. */
export const exampleArgs = `{"text": "one two three"}`;

/** Files that a directory of Node tools needs once, by name. */
export const nodeCompanions = {
  /** Tells Node, whatever stands in directories above, that the files are modules. */
  "package.json": `{
  "private": true,
  "type": "module"
}
`,
  /** Tells editors and tsc what of TypeScript runs as it is. */
  "tsconfig.json": `{
  "compilerOptions": {
    "target": "esnext",
    "module": "nodenext",
    "types": ["node"],
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true
  }
}
`,
} as const;

/** A file to be. */
interface TextFile {
  readonly name: string;
  readonly text: string;
}

/** Files of a new tool. */
export interface ToolFiles {
  readonly tool: TextFile;
  readonly test: TextFile;
}

/** The files of a new tool; `tool` is the name that agents call. */
export function toolFiles(
  runtime: Runtime,
  shape: Shape,
  tool: string,
  names: ToolNames,
): ToolFiles {
  const extension = runtime === "python" ? "py" : "ts";
  const text = runtime === "python" ? pythonTools[shape](names) : nodeTool(names);
  return {
    tool: { name: `${names.file}.${extension}`, text },
    test: { name: `${names.file}.test.yaml`, text: testCases(tool) },
  };
}

const pythonTools: Readonly<Record<Shape, (names: ToolNames) => string>> = {
  function: ({
    callable,
  }) => `"""A tool that counts words. Arguments come by name; a dict goes back."""

from secure_tool_runtime import ToolContext, ToolError


def ${callable}(ctx: ToolContext, text: str) -> dict[str, object]:
    """Counts the words of a text and saves them, one in each line."""
    if not text:
        raise ToolError("There is no text to count")
    ctx.send_status("Counting...")
    words = text.split()
    ctx.save_artifact_text("words.txt", "\\n".join(words))
    return {"status": "success", "count": len(words)}
`,

  async: ({ callable }) => `"""A tool that counts words, and awaits what takes long."""

import asyncio

from secure_tool_runtime import ToolContext, ToolError


async def ${callable}(ctx: ToolContext, text: str) -> dict[str, object]:
    """Counts the words of a text and saves them, one in each line."""
    if not text:
        raise ToolError("There is no text to count")
    ctx.send_status("Counting...")
    words = await asyncio.to_thread(text.split)
    ctx.save_artifact_text("words.txt", "\\n".join(words))
    return {"status": "success", "count": len(words)}
`,

  class: ({
    callable,
  }) => `"""A tool that counts words, as a class. Arguments come as a dict; a dict goes back."""

from typing import Any, Optional

from secure_tool_runtime import DynamicTool, ToolContextFacade, ToolError


class ${callable}(DynamicTool):
    """Counts the words of a text and saves them, one in each line."""

    ctx_facade_param_name = "ctx"

    async def _run_async_impl(
        self, args: dict[str, Any], tool_context: object = None, credential: Optional[str] = None
    ) -> dict[str, object]:
        ctx: ToolContextFacade = args["ctx"]
        text: str = args["text"]
        if not text:
            raise ToolError("There is no text to count")
        ctx.send_status("Counting...")
        words = text.split()
        ctx.save_artifact_text("words.txt", "\\n".join(words))
        return {"status": "success", "count": len(words)}
`,
};

function nodeTool({ callable }: ToolNames): string {
  return `/**
 * A tool that counts words. Arguments come as one object; an object goes back.
 */
import { type ToolContext, ToolError } from "secure-tool-runtime/tool";

/** Counts the words of a text and saves them, one in each line. */
export async function ${callable}({ text }: { text: string }, ctx: ToolContext): Promise<object> {
  if (!text) throw new ToolError("There is no text to count");
  await ctx.sendStatus("Counting...");
  const words = text.split(/\\s+/).filter((word) => word !== "");
  await ctx.saveArtifactText("words.txt", words.join("\\n"));
  return { status: "success", count: words.length };
}
`;
}

function testCases(tool: string): string {
  return `# Calls of the tool in its sandbox, without a broker: harness tool test
${stringify({ tool })}
cases:
  - name: counts the words
    args: { text: one two three }
    expect:
      result: { status: success, count: 3 }
      artifacts: { words.txt: "one\\ntwo\\nthree" }
      statuses: [Counting...]

  - name: says that there is no text
    args: { text: "" }
    expect:
      error: { code: TOOL_ERROR, message: There is no text to count }
`;
}
