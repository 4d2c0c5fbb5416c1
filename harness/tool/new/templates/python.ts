/**
 * New Python tools.
 */
import type { ToolNames } from "../names.ts";
import type { Scaffold } from "../scaffold.ts";
import type { pythonShapes } from "../shapes.ts";
import { exampleArgs, testCases } from "./cases.ts";

type PythonShape = (typeof pythonShapes)[number];

/** A module that counts words. `tool` is the name that agents call; a class is `names.callable`. */
export function pythonScaffold(shape: PythonShape, tool: string, names: ToolNames): Scaffold {
  const { file, callable } = names;
  const isProvider = shape === "provider";
  const tools = isProvider ? [`${file}_count`, `${file}_longest`] : [tool];
  const cases = testCases(tools[0] ?? tool);
  const entry = isProvider
    ? { class_name: callable, tools }
    : { [shape === "class" ? "class_name" : "function"]: callable };
  return {
    files: [
      { name: `${file}.py`, text: texts[shape](names) },
      { name: `${file}.test.yaml`, text: isProvider ? cases + longestCase(names) : cases },
    ],
    entry: { module: file, ...entry },
    tools,
    target: `${file}.py:${callable}`,
    call: () => exampleArgs,
  };
}

function longestCase({ file }: ToolNames): string {
  return `
  - name: finds the longest word
    tool: ${file}_longest
    args: { text: one two three }
    expect:
      result: { word: three }
`;
}

const texts: Readonly<Record<PythonShape, (names: ToolNames) => string>> = {
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
    parameters_schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }

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

  provider: ({
    file,
    callable,
  }) => `"""Tools about words, from one class. Each is a tool of its own for agents."""

from secure_tool_runtime import DynamicToolProvider, ToolContext, ToolError


class ${callable}(DynamicToolProvider):
    """Provides the functions that are registered with it. Each call gets an instance."""

    def words_of(self, text: str) -> list[str]:
        if not text:
            raise ToolError("There is no text to count")
        return text.split()


@${callable}.register_tool
def ${file}_count(self: ${callable}, ctx: ToolContext, text: str) -> dict[str, object]:
    """Counts the words of a text and saves them, one in each line."""
    words = self.words_of(text)
    ctx.send_status("Counting...")
    ctx.save_artifact_text("words.txt", "\\n".join(words))
    return {"status": "success", "count": len(words)}


@${callable}.register_tool
def ${file}_longest(self: ${callable}, text: str) -> dict[str, object]:
    """Finds the longest word of a text."""
    return {"word": max(self.words_of(text), key=len)}
`,
};
