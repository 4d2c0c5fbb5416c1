/**
 * A run that is repeated whenever something in the tool's directory changes.
 */
import type { Context } from "../context.ts";
import { SourceChanges } from "../dev/source-changes.ts";
import { printable } from "../invoke/screen.ts";
import { shortPath } from "../options/typed-command.ts";

/**
 * Runs the tool, and again after each change, until the signal aborts: then it throws the signal's
 * reason.
 */
export async function runAtChanges(
  toolsDir: string,
  run: () => Promise<number>,
  { clock, err, signal }: Context,
): Promise<number> {
  await using changes = await SourceChanges.open([toolsDir], clock, (error) => {
    err.line(printable(`changes are not seen: ${String(error)}`));
  });
  const waiting = `Waiting for a change below ${shortPath(toolsDir)}; Ctrl-C ends it.`;
  let exitCode = await run();
  err.line(err.paint("dim", printable(waiting)));
  for await (const [first = ""] of changes.batches(signal)) {
    err.line(err.paint("bold", printable(`Changed: ${shortPath(first)}.`)));
    exitCode = await run();
    err.line(err.paint("dim", printable(waiting)));
  }
  signal.throwIfAborted();
  return exitCode;
}
