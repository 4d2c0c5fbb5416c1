/**
 * Waiting for a worker that serves a tool, and what to say when none does.
 */
import { invokeTopic } from "../../worker/protocol/topics.ts";
import { settlesWithin } from "../../worker/support/within.ts";
import { type Agent, type NoAnswer, defaultAgentName } from "../agent.ts";
import type { Context } from "../context.ts";
import { type EmbeddedBroker, explainSilence } from "../dev-broker/embedded-broker.ts";
import { inboxPattern } from "../messages.ts";
import { printable } from "../invoke/screen.ts";
import { workerCommand } from "./worker-command.ts";

/** Milliseconds of waiting of which nothing is said: a worker that is there answers sooner. */
const quietMs = 500;

/** Who is waited for, and how long. */
export interface Wanted {
  readonly tool: string;
  readonly namespace: string;
  readonly timeoutSeconds: number;
}

/**
 * Waits at our own broker until somebody subscribes to the tool's calls; false when nobody did in
 * time.
 */
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
 * Waits at a running broker until a worker answers for the tool, or until one serves it, with the
 * reasons of those that do not; false when none did in time. Says so when that takes a moment.
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

/** Says why a call may have got no answer. `embedded` is the broker, if it is ours. */
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

/** Whether `wait` was over in time; its own failures pass. */
async function inTime(
  { timeoutSeconds }: Wanted,
  context: Context,
  wait: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
  try {
    await wait(AbortSignal.any([context.signal, timeout]));
    return true;
  } catch (error) {
    context.signal.throwIfAborted();
    if (timeout.aborted) return false;
    throw error;
  }
}
