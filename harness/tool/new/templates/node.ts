/**
 * New Node tools.
 */
import type { ToolNames } from "../names.ts";
import type { Scaffold } from "../scaffold.ts";
import { exampleArgs, testCases } from "./cases.ts";

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

/** A function that counts words. `tool` is the name that agents call. */
export function nodeScaffold(tool: string, names: ToolNames): Scaffold {
  const { file, callable } = names;
  return {
    files: [
      { name: `${file}.ts`, text: textOf(names) },
      { name: `${file}.test.yaml`, text: testCases(tool) },
    ],
    entry: { module: `${file}.ts`, function: callable },
    tools: [tool],
    target: `${file}.ts:${callable}`,
    call: () => exampleArgs,
  };
}

function textOf({ callable }: ToolNames): string {
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
