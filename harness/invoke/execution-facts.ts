/**
 * What an answer says of the execution: what the tool printed, which tools it called, what its
 * network refused, and where a program failed.
 */
import { z } from "zod";
import type { ProgramFailure } from "../../worker/protocol/tool-calls/program.ts";
import type { Context } from "../context.ts";
import type { CallOutcome } from "./answer.ts";
import { OutputView } from "./output-view.ts";
import { printable } from "./screen.ts";

const streamEnd = z
  .object({ text: z.string(), dropped_bytes: z.int().min(0) })
  .transform(({ text, dropped_bytes: droppedBytes }) => ({ text, droppedBytes }));

const refusal = z.object({ host: z.string(), port: z.int().optional(), reason: z.string() });

const toolCall = z
  .object({
    id: z.string(),
    tool: z.string(),
    start_ms: z.number(),
    duration_ms: z.number(),
    outcome: z.string(),
  })
  .transform(({ start_ms: startMs, duration_ms: durationMs, ...call }) => {
    return { ...call, startMs, durationMs };
  });

const withExecution = z.object({
  execution: z.object({
    output: z.object({ stdout: streamEnd, stderr: streamEnd }).optional(),
    network: z.object({ refusals: z.array(refusal) }).optional(),
    tool_calls: z.array(toolCall).optional(),
    tool_calls_omitted: z.int().optional(),
  }),
});

const response = z.union([
  z.object({ result: withExecution }).transform(({ result }) => result),
  z.object({ error: z.object({ data: withExecution }) }).transform(({ error }) => error.data),
]);

/** `--logs`: shows the end of each stream on standard error, or says why there is none. */
export function printToolLogs(outcome: CallOutcome, { err }: Context): void {
  if (outcome.kind === "no-answer") return;
  const output = executionOf(outcome.response)?.output;
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

/** Prints each refused connection to standard error: a tool seldom knows why it failed. */
export function printRefusals(outcome: CallOutcome, { err }: Context): void {
  if (outcome.kind === "no-answer") return;
  for (const { host, port, reason } of executionOf(outcome.response)?.network?.refusals ?? []) {
    const place = port === undefined ? host : `${host}:${port}`;
    err.line(printable(`refused: ${place}, ${reason}`));
  }
}

/** A call that a tool made by its gateway. */
export type ReportedCall = z.output<typeof toolCall>;

/** The calls that the tool of an answer made by its gateway, and how many more there were. */
export function toolCallsOf(answer: unknown): {
  readonly calls: readonly ReportedCall[];
  readonly omitted: number;
} {
  const { tool_calls: calls = [], tool_calls_omitted: omitted = 0 } = executionOf(answer) ?? {};
  return { calls, omitted };
}

const programFailure = z.object({
  error: z.object({
    data: z.object({
      line: z.int(),
      column: z.int().optional(),
      stack: z.array(z.string()).optional(),
    }),
  }),
});

/** Where the program of an answer failed; undefined for other answers. */
export function programFailureOf(answer: unknown): ProgramFailure | undefined {
  return programFailure.safeParse(answer).data?.error.data;
}

function executionOf(answer: unknown): z.output<typeof withExecution>["execution"] | undefined {
  return response.safeParse(answer).data?.execution;
}
