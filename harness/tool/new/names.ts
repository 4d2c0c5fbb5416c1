/**
 * What a new tool's files and functions are called, from the name that agents call it by.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { CommandError } from "../../context.ts";

const run = promisify(execFile);

/** Milliseconds that Python may take to say whether a name is free. */
const questionTimeoutMs = 30_000;

/** What the tool's file imports. */
const imported = ["ToolContext", "ToolError"];
const importedByPython = [...imported, "DynamicTool", "ToolContextFacade", "Any", "Optional"];

/**
 * Words that JavaScript keeps for itself in modules (ECMAScript, "Keywords and Reserved Words").
 */
const takenInJavaScript: ReadonlySet<string> = new Set([
  ...imported,
  ...(
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends " +
    "false finally for function if implements import in instanceof interface let new null package private protected " +
    "public return static super switch this throw true try typeof var void while with yield"
  ).split(" "),
]);

/** A keyword is no module's name, and neither a module nor a function must hide what Python has. */
const isTaken = `
import builtins, importlib.util, keyword, sys
name = sys.argv[1]
print(keyword.iskeyword(name) or hasattr(builtins, name) or importlib.util.find_spec(name) is not None)`;

const takenInPython: ReadonlySet<string> = new Set([...importedByPython, "secure_tool_runtime"]);

/** A file without its ending, and the function in it. */
export interface ToolNames {
  readonly file: string;
  readonly callable: string;
}

/**
 * `my-tool` becomes the module and function `my_tool`; what Python has already gets `_tool` at its
 * end. Throws CommandError when the interpreter cannot be asked.
 */
export async function pythonNames(tool: string, pythonBin: string): Promise<ToolNames> {
  const words = tool.replaceAll(/\W/g, "_");
  const name = /^\d/.test(words) ? `tool_${words}` : words;
  const isFree = !takenInPython.has(name) && !(await askPython(pythonBin, name));
  const free = isFree ? name : `${name}_tool`;
  return { file: free, callable: free };
}

async function askPython(pythonBin: string, name: string): Promise<boolean> {
  try {
    const { stdout } = await run(pythonBin, ["-I", "-c", isTaken, name], {
      cwd: "/",
      timeout: questionTimeoutMs,
    });
    return stdout.trim() === "True";
  } catch (error) {
    throw new CommandError(`cannot use ${pythonBin} as the Python interpreter: ${String(error)}`, {
      cause: error,
    });
  }
}

/** The name of a class, as of a function that is called `my_tool`: `MyTool`. */
export function pythonClassName(functionName: string): string {
  const camel = functionName.replaceAll(/(?:^|_)([A-Za-z0-9]?)/g, (_, letter: string) => {
    return letter.toUpperCase();
  });
  return takenInPython.has(camel) ? `${camel}Class` : camel;
}

/** `my-tool` becomes the file `my-tool` and the function `myTool`. */
export function nodeNames(tool: string): ToolNames {
  const camel = tool
    .replaceAll(/[^A-Za-z0-9]+([A-Za-z0-9]?)/g, (_, letter: string) => letter.toUpperCase())
    .replace(/^\d/, "tool$&");
  return { file: tool, callable: takenInJavaScript.has(camel) ? `${camel}Tool` : camel };
}
