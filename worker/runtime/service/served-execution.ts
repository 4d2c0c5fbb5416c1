/**
 * The one request of a connection, on the far side.
 */
import { ProxyClient } from "../../gateway/proxy/client.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import type { Semaphore } from "../../support/semaphore.ts";
import { settlesWithin, withTimeout } from "../../support/timeout.ts";
import type { RuntimeBackend } from "../api/backend.ts";
import { RuntimeError } from "../api/errors.ts";
import type { ExecuteResult } from "../api/result.ts";
import type { Connection } from "./connection.ts";
import { errorMessage } from "./failure.ts";
import { answerMs, handshakeMs, maxAnswerBytes } from "./limits.ts";
import type { CallerRequest, Description, ExecuteMessage, ResultMessage } from "./messages.ts";

/** What the connections of a service share. */
export interface ServiceParts {
  readonly backend: RuntimeBackend;
  /** Executions at once. The bound of connections is that of the queue. */
  readonly permits: Semaphore;
  /** Aborts when the service closes. */
  readonly closing: AbortSignal;
  /** Gets failures of the backend that are no RuntimeErrors. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
}

/** Answers, and waits until the caller has the answer. */
export async function serveConnection(
  connection: Connection<CallerRequest>,
  parts: ServiceParts,
): Promise<void> {
  const { backend, permits, closing, clock = systemClock } = parts;
  const request = await withTimeout(handshakeMs, clock, closing, (signal) =>
    connection.next(signal),
  ).catch(() => undefined);
  if (request === undefined || request.type === "abort") return connection.refuse("no request");
  const signal = AbortSignal.any([abortOf(connection), connection.ended, closing]);
  // Unread answers are in memory: as many as there are permits.
  using permit =
    request.type === "execute" ? await permits.acquire(signal).catch(() => undefined) : undefined;
  if (request.type === "describe") connection.send(description(backend));
  else if (permit === undefined) connection.send(errorMessage(signal.reason));
  else connection.sendText(await execute(connection, request, parts, signal));
  await settlesWithin(endOf(connection), answerMs, clock, closing);
}

/** Aborts when the caller says so, the only message that it may send now. */
function abortOf(connection: Connection<CallerRequest>): AbortSignal {
  const aborting = new AbortController();
  connection.next().then(
    ({ type }) => {
      if (type !== "abort") connection.refuse("a connection has one request");
      else aborting.abort(new Error("the caller aborted the execution"));
    },
    () => undefined,
  );
  return aborting.signal;
}

/** The text of the answer. */
async function execute(
  connection: Connection<CallerRequest>,
  { type: _, kind, ...request }: ExecuteMessage,
  { backend, onError }: ServiceParts,
  signal: AbortSignal,
): Promise<string> {
  await using gateway = new ProxyClient(connection.channel);
  try {
    requireKind(backend, kind);
    const result = await backend.execute({ ...request, gateway }, { signal });
    const text = JSON.stringify(resultMessage(result));
    const sizeBytes = Buffer.byteLength(text);
    if (sizeBytes <= maxAnswerBytes) return text;
    throw new RuntimeError("RESOURCE_LIMIT", {
      detail: `the answer has ${sizeBytes} bytes; at most ${maxAnswerBytes} can be sent`,
      data: { limit: "answer", bound: maxAnswerBytes },
    });
  } catch (error) {
    if (!signal.aborted && isFault(error)) onError(error);
    return JSON.stringify(errorMessage(error));
  }
}

/** Callers decide by the kind of a backend, such as one that isolates nothing. */
function requireKind({ kind }: RuntimeBackend, expected = kind): void {
  if (kind === expected) return;
  const detail = `the far side has another backend than when it was opened: ${kind}`;
  throw new RuntimeError("RUNTIME_UNAVAILABLE", { detail, op: "select", retryable: false });
}

/** Whether the backend itself failed. */
function isFault(error: unknown): boolean {
  if (!(error instanceof RuntimeError)) return true;
  return error.code === "RUNTIME_UNAVAILABLE" && error.cause !== undefined;
}

function description(backend: RuntimeBackend): Description {
  const { kind, readiness, profiles, evidence } = backend;
  const [first = "", ...others] = backend.languages;
  const languages: Description["languages"] = [first, ...others];
  return { type: "description", kind, languages, readiness, profiles: [...profiles], evidence };
}

function resultMessage(result: ExecuteResult): ResultMessage {
  const { value, stdout, stderr, limitsEnforcedBy, backend, durationMs } = result;
  return { type: "result", value, stdout, stderr, limitsEnforcedBy, backend, durationMs };
}

async function endOf({ ended }: Connection<CallerRequest>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (ended.aborted) return;
  ended.addEventListener("abort", () => resolve(), { once: true });
  await promise;
}
