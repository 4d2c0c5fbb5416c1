/**
 * What a program that fails is answered with: its author has to repair it.
 */
import type { Thrown } from "./guest/contract.ts";
import type { FailurePlace, Outcome } from "./messages.ts";
import type { Mistake } from "./source.ts";

/** Lines of a stack. */
const maxFrames = 20;
/** Characters of a line of the source that is shown. */
const maxSourceCharacters = 160;

/** What runs: its name in stacks, and its source. */
export interface Script {
  readonly name: string;
  readonly source: string;
}

export function syntaxFailure({ message, line, column }: Mistake): Outcome {
  const text = `${message} (line ${line}, column ${column})`;
  return { kind: "failed", message: text, place: { line, column } };
}

export function thrownFailure({ text, stack }: Thrown, script: Script): Outcome {
  const frames = framesIn(stack, script.name);
  const [top] = frames;
  if (top === undefined) return { kind: "failed", message: `Program threw ${text}` };
  const lines = script.source.split("\n");
  const shown = frames.slice(0, maxFrames).map(({ line, column, within }) => {
    const source = (lines[line - 1] ?? "").trim().slice(0, maxSourceCharacters);
    return `line ${line}, column ${column}${within === "" ? "" : `, in ${within}`}: ${source}`;
  });
  const { line, column } = top;
  const place: FailurePlace = { line, column, stack: shown };
  return { kind: "failed", message: `Program threw ${text} (line ${line})`, place };
}

/** The frames of the program itself: `at f (program.ts:4:22)`. */
function framesIn(
  stack: string,
  name: string,
): readonly { readonly line: number; readonly column: number; readonly within: string }[] {
  const frame = new RegExp(`^\\s+at (?:(.+) \\()?${RegExp.escape(name)}:(\\d+):(\\d+)\\)?$`);
  return stack.split("\n").flatMap((text) => {
    const [found, called = "", line, column] = frame.exec(text) ?? [];
    if (found === undefined) return [];
    // The engine's names for the program itself, and for a function without one.
    const within = called === "<eval>" || called === "<anonymous>" ? "" : called;
    return [{ line: Number(line), column: Number(column), within }];
  });
}
