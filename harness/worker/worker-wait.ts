/**
 * Waits for a worker that serves a tool, and explains a missing one.
 */
import { invokeTopic } from "../../worker/protocol/topics.ts";
import { settlesWithin } from "../../worker/support/timeout.ts";
import { type Agent, type NoAnswer, defaultAgentName } from "../agent.ts";
import type { Context } from "../context.ts";
import { type EmbeddedBroker, explainSilence } from "../dev-broker/embedded-broker.ts";
import { inboxPattern } from "../messages.ts";
import { printable } from "../invoke/screen.ts";
import { workerCommand } from "./worker-command.ts";

/** Milliseconds of a silent wait: a running worker answers sooner. */
const quietMs = 500;

/** The worker to wait for, and the time limit. */
export interface Wanted {
  readonly tool: string;
  readonly namespace: string;
  readonly timeoutSeconds: number;
}

/** Waits at the embedded broker for a subscription to the tool's calls; false when none came. */
export async function workerSubscribes(
  wanted: Wanted,
  { broker, seen }: EmbeddedBroker,
  context: Context,
): Promise<boolean> {
  const { tool, namespace, timeoutSeconds } = wanted;
  const { err, environment } = context;
  const { host, port } = broker;
  err.line(`DevBroker listens on ${host}:${port}.`);
  err.line(`Waiting up to ${timeoutSeconds} s for a worker that serves ${tool}. To start one:`);
  err.line(`\n${await workerCommand({ namespace, host, port, environment })}\n`);
  const topic = invokeTopic(namespace, tool);
  if (await inTime(wanted, context, (signal) => broker.whenSubscribed(topic, signal))) return true;
  err.line(`No worker subscribed to ${topic} within ${timeoutSeconds} s.`);
  err.line(printable(explainSilence(topic, seen())));
  return false;
}

/**
 * Waits at a running broker until a worker answers for the tool, or serves it; false after the time
 * limit. Prints a long wait, and the refusals of other workers.
 */
export async function workerAnswers(
  wanted: Wanted,
  patience: "answered" | "served",
  agent: Agent,
  context: Context,
): Promise<boolean> {
  const { tool, namespace, timeoutSeconds } = wanted;
  let printed: string | undefined;
  const printRefusal = (reason: string): void => {
    if (reason !== printed) context.err.line(printable(reason));
    printed = reason;
  };
  const answered = inTime(wanted, context, async (signal) => {
    if (patience === "served") await agent.whenServed(tool, signal, printRefusal);
    else await agent.ask(tool, signal);
  });
  if (!(await settlesWithin(answered, quietMs, context.clock))) {
    context.err.line(`Waiting up to ${timeoutSeconds} s for a worker that serves ${tool}.`);
  }
  if (await answered) return true;
  context.err.line(
    `No worker answered on ${invokeTopic(namespace, tool)} within ${timeoutSeconds} s.`,
  );
  context.err.line(compareTopics);
  return false;
}

/** Prints the likely cause of a missing answer. */
export function explainNoAnswer(
  { namespace, tool }: Wanted,
  { isUnroutable, waitedSeconds }: NoAnswer,
  embedded: EmbeddedBroker | undefined,
  { err }: Context,
): void {
  const topic = invokeTopic(namespace, tool);
  err.line(
    isUnroutable
      ? `The broker has nobody to give the call on ${topic} to.`
      : `No answer to the call on ${topic} within ${waitedSeconds} s.`,
  );
  if (!embedded) {
    err.line(compareTopics);
    return;
  }
  const own = inboxPattern(namespace, defaultAgentName);
  const others = embedded.seen().filter(({ patterns }) => !patterns.includes(own));
  err.line(printable(explainSilence(topic, others)));
}

const compareTopics =
  "A running broker does not tell who subscribes to what: compare this topic with SAM_NAMESPACE and manifest of the worker.";

/** Whether `wait` ended in time. Rejects with its errors. */
async function inTime(
  { timeoutSeconds }: Wanted,
  context: Context,
  wait: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const timeout = AbortSignal.timeout(Math.ceil(timeoutSeconds * 1000));
  try {
    await wait(AbortSignal.any([context.signal, timeout]));
    return true;
  } catch (error) {
    context.signal.throwIfAborted();
    if (timeout.aborted) return false;
    throw error;
  }
}
