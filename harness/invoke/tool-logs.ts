/**
 * `--logs`: what the tool printed, by the answer of a worker that tells its callers.
 */
import { z } from "zod";
import type { ToolOutput } from "../../worker/protocol/execution.ts";
import type { Context } from "../context.ts";
import type { CallOutcome } from "./answer.ts";
import { OutputView } from "./output-view.ts";

const streamEnd = z
  .object({ text: z.string(), dropped_bytes: z.int().min(0) })
  .transform(({ text, dropped_bytes: droppedBytes }) => ({ text, droppedBytes }));

const withOutput = z.object({
  execution: z.object({ output: z.object({ stdout: streamEnd, stderr: streamEnd }) }),
});

const response = z.union([
  z.object({ result: withOutput }).transform(({ result }) => result),
  z.object({ error: z.object({ data: withOutput }) }).transform(({ error }) => error.data),
]);

/** Shows the end of each stream on standard error, or says why there is none. */
export function printToolLogs(outcome: CallOutcome, { err }: Context): void {
  if (outcome.kind === "no-answer") return;
  const output = outputOf(outcome.response);
  if (output === undefined) {
    err.line("no logs: workers send them with TOOL_LOGS=caller, as harness dev has it");
    return;
  }
  const view = new OutputView(err);
  for (const name of ["stdout", "stderr"] as const) {
    const { text, droppedBytes } = output[name];
    if (droppedBytes > 0) err.line(err.paint("dim", `${name}: … ${droppedBytes} bytes before`));
    view.take(name, Buffer.from(text));
  }
  view.finish();
}

function outputOf(answer: unknown): ToolOutput | undefined {
  return response.safeParse(answer).data?.execution.output;
}
