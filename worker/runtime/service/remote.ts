/**
 * The backend `remote`: executes in another process, and keeps the gateway here.
 */
import { ProxyHost } from "../../gateway/proxy/host.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { abortable, settlesWithin, withTimeout } from "../../support/timeout.ts";
import {
  type Executed,
  type Execution,
  type RuntimeBackend,
  defineBackend,
  unsafeHost,
} from "../api/backend.ts";
import { RuntimeError } from "../api/errors.ts";
import type { BoundLimits, RuntimeLimits } from "../api/limits.ts";
import { Connector, unavailable } from "./connect.ts";
import { type Connection, ConnectionError } from "./connection.ts";
import { errorOf } from "./failure.ts";
import { endingMs, handshakeMs, maxRequestBytes, timeoutGraceMs, timerSlackMs } from "./limits.ts";
import type { Description, ExecuteMessage, FarAnswer } from "./messages.ts";
import type { RemoteOptions } from "./options.ts";
import { withoutArtifacts } from "../without-artifacts.ts";

/** The kind of backends that execute elsewhere. */
export const remote = "remote";

const neverAborts = new AbortController().signal;

/**
 * Asks a far side what it is, and executes there. A far side without isolation is of the kind
 * `unsafe_host` here, too. The caller owns it. Rejects with RuntimeError `RUNTIME_UNAVAILABLE`.
 */
export async function openRemote(options: RemoteOptions): Promise<RuntimeBackend> {
  const { signal = neverAborts, clock = systemClock, ...address } = options;
  const connector = new Connector(address);
  const far = await describe(connector, clock, signal);
  const { kind, languages, readiness, profiles, evidence } = far;
  const side = new FarSide(connector, kind, clock);
  return defineBackend(
    {
      // Who denies it by its kind denies it over a connection.
      kind: kind === unsafeHost ? unsafeHost : remote,
      ...{ languages, readiness, profiles, evidence },
      details: { host: connector.name, kind },
      run: (execution, ending) => side.run(execution, ending),
      close: async () => side.close(),
    },
    clock,
  );
}

async function describe(
  connector: Connector,
  clock: Clock,
  signal: AbortSignal,
): Promise<Description> {
  await using connection = await connector.connect(signal);
  connection.send({ type: "describe" });
  const answer = await withTimeout(handshakeMs, clock, signal, (ending) =>
    connection.next(ending),
  ).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw unavailable(`${connector.name} says not what it is`, { retryable: true, cause });
  });
  if (answer.type === "description") return answer;
  throw unavailable(`${connector.name} says not what it is`, { retryable: false });
}

class FarSide {
  readonly #connector: Connector;
  readonly #kind: string;
  readonly #clock: Clock;
  readonly #closing = new AbortController();

  constructor(connector: Connector, kind: string, clock: Clock) {
    this.#connector = connector;
    this.#kind = kind;
    this.#clock = clock;
  }

  close(): void {
    this.#closing.abort(unavailable("the backend is closed", { retryable: false }));
  }

  async run(execution: Execution, aborting: AbortSignal): Promise<Executed> {
    const startMs = this.#clock.monotonicMs();
    const request = requestText(execution, this.#kind);
    const signal = AbortSignal.any([aborting, this.#closing.signal]);
    await using connection = await this.#connector.connect(signal);
    await using host = new ProxyHost(connection.channel, withoutArtifacts(execution.gateway));
    signal.throwIfAborted();
    host.open();
    // The far side does not see that its channel was closed for what it sent.
    void host.ended.then(({ reason, message }) => {
      if (reason !== "closed") connection.refuse(message);
    });
    connection.sendText(request);
    const answered = connection.next();
    try {
      return executedOf(await abortable(answered, signal));
    } catch (error) {
      if (signal.aborted) {
        const leftMs = execution.timeoutMs - (this.#clock.monotonicMs() - startMs);
        const isOver = leftMs < timerSlackMs;
        const failure = await this.#end(connection, answered, isOver);
        this.#closing.signal.throwIfAborted();
        throw failure ?? signal.reason;
      }
      throw error instanceof ConnectionError ? this.#lost(error) : error;
    }
  }

  /** Ends the execution on the far side. The failure has what was printed until then. */
  async #end(
    connection: Connection<FarAnswer>,
    answered: Promise<FarAnswer>,
    isOver: boolean,
  ): Promise<RuntimeError | undefined> {
    // The far side keeps the time limit, too, and says what was printed.
    const hasEnded = isOver && (await settlesWithin(answered, timeoutGraceMs, this.#clock));
    if (!hasEnded) {
      connection.send({ type: "abort" });
      if (!(await settlesWithin(answered, endingMs, this.#clock))) return undefined;
    }
    const answer = await answered.catch(() => undefined);
    return answer?.type === "error" ? errorOf(answer) : undefined;
  }

  #lost(cause: ConnectionError): RuntimeError {
    const detail = `${this.#connector.name}: ${cause.message}`;
    const retryable = cause.isLost;
    return new RuntimeError("RUNTIME_UNAVAILABLE", { detail, retryable, cause });
  }
}

/** The message of an execution. Throws RuntimeError for one that cannot be sent. */
function requestText(execution: Execution, kind: string): string {
  const { code, language, timeoutMs, limits, requireEnforced, profile, metadata } = execution;
  const message = {
    ...{ type: "execute" as const, code, language, timeoutMs, limits: sentLimits(limits), kind },
    requireEnforced: [...new Set(requireEnforced)],
    ...(profile !== undefined && { profile }),
    metadata,
  };
  let text: string;
  try {
    text = JSON.stringify(message satisfies Omit<ExecuteMessage, "metadata">);
  } catch (cause) {
    const options = { op: "validate", retryable: false, cause } as const;
    throw new RuntimeError("RUNTIME_UNAVAILABLE", { ...options, detail: "metadata is no JSON" });
  }
  const sizeBytes = Buffer.byteLength(text);
  if (sizeBytes <= maxRequestBytes) return text;
  throw new RuntimeError("RESOURCE_LIMIT", {
    detail: `the request has ${sizeBytes} bytes; at most ${maxRequestBytes} can be sent`,
    ...{ op: "validate", data: { limit: "request", bound: maxRequestBytes } },
  });
}

function sentLimits(limits: BoundLimits): RuntimeLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, bound]) => bound !== Infinity));
}

/** Throws the far side's RuntimeError. */
function executedOf(answer: FarAnswer): Executed {
  if (answer.type === "error") throw errorOf(answer);
  if (answer.type === "description")
    throw new RuntimeError("RUNTIME_UNAVAILABLE", { detail: "it answers another question" });
  const { value, stdout, stderr, limitsEnforcedBy: evidence, backend, durationMs } = answer;
  const { kind, readiness, details } = backend;
  const far = { kind, readiness, details, durationMs };
  return { value, stdout, stderr, evidence, details: { far } };
}
