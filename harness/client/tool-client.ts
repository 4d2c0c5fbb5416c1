/**
 * The client half as a library, published as `secure-tool-runtime/client`: calls tools as agents
 * do, over any broker.
 *
 * ```ts
 * const broker = "amqp://user:password@host/";
 * await using client = await ToolClient.connect({ broker, namespace: "ed_test" });
 * const { toolResult } = await client.invoke("echo_tool", { message: "hello" });
 * ```
 */
import type { Broker } from "../../worker/broker/broker.ts";
import type { BrokerLog } from "../../worker/broker/log.ts";
import type { CreatedArtifact } from "../../worker/protocol/invocation.ts";
import { maxTimeoutSeconds } from "../../worker/protocol/limits.ts";
import type {
  StatusDetails,
  StatusListener,
} from "../../worker/protocol/messages/status-details.ts";
import { namespaceProblem, toolNameProblem } from "../../worker/protocol/topics.ts";
import { type JsonObject, isJsonObject } from "../../worker/support/json/json.ts";
import { Agent, type CallResult, defaultAgentName, newInbox } from "../agent.ts";
import { type ArtifactInputs, stageArtifacts } from "./artifact-inputs.ts";
import { chooseBroker, openClientBroker, silentLog } from "./broker-choice.ts";
import { ToolCallError } from "./tool-call-error.ts";

export { BrokerError } from "../../worker/broker/broker.ts";
export { ConfigError } from "../../worker/config/config.ts";
export { RequestTooLargeError } from "../messages.ts";
export { ToolCallError } from "./tool-call-error.ts";
export type { Broker, BrokerLog, CreatedArtifact, JsonObject, StatusDetails };
export type {
  ArtifactInput,
  ArtifactInputs,
  SentArtifact,
  StoredArtifact,
} from "./artifact-inputs.ts";
export type { ClientErrorCode } from "./tool-call-error.ts";

/** Longest name of a client, so that topics of answers fit the brokers' limits. */
const maxNameLength = 64;

/** Options of a connection. */
export interface ToolClientOptions {
  /**
   * `dev://HOST:PORT`, `amqp[s]://USER:PASSWORD@HOST:PORT/VHOST`, or `tcp[s]://` or
   * `ws[s]://USER:PASSWORD@HOST:PORT/VPN` for Solace; `dev`, `amqp` or `solace` for the broker that
   * `environment` names; or a broker to connect to as it is.
   */
  readonly broker: string | Broker;
  /** Spelled exactly as the worker's. */
  readonly namespace: string;
  /**
   * Letters, digits and `_`, at most 64; `harness` by default. Clients of one name receive copies
   * of each other's answers, and ignore them.
   */
  readonly name?: string;
  /** The worker's variables, such as `AMQP_CA_FILE`, to complete `broker`; none by default. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Attempts per outage; 0 for ever. By default `CONNECT_RETRIES` of `environment`. */
  readonly connectRetries?: number;
  /** Log of the connection; none by default. */
  readonly log?: BrokerLog;
  /** Cancels the first connection. */
  readonly signal?: AbortSignal;
}

/** Options of a call. */
export interface InvokeOptions {
  /** By parameter name. Parameters without an argument get the filename or filenames. */
  readonly artifacts?: ArtifactInputs;
  /** Receives each status in order, before the result. Its error fails the call. */
  readonly onStatus?: StatusListener;
  /**
   * Cancels the call: the workers stop it, and `invoke` rejects with the signal's reason once they
   * have been told, within a second.
   */
  readonly signal?: AbortSignal;
  /** Time limit in whole seconds, 1 to 86400; 300 by default. */
  readonly timeoutSeconds?: number;
  /** Configuration of the tool; may hold secrets. */
  readonly toolConfig?: JsonObject;
  /** Requested sandbox profile; `standard` by default. */
  readonly profile?: string;
  /** Caller of the tool; user and session own the artifacts. The client's name by default. */
  readonly userId?: string;
  readonly sessionId?: string;
}

/** The result of a tool. */
export interface ToolResult {
  readonly toolResult: JsonObject;
  /** Its created files in the worker's store. */
  readonly createdArtifacts: readonly CreatedArtifact[];
  /** Milliseconds in the worker. */
  readonly executionTimeMs: number;
  /** Milliseconds from before the publication to the answer. */
  readonly roundTripMs: number;
  /** Id of the call in logs. */
  readonly correlationId: string;
}

/**
 * A connected client for at most 10,000 concurrent calls. Disposing fails pending calls.
 *
 * It reconnects `connectRetries` times with growing, random delays, and resends unconfirmed
 * requests under the same id: their worker runs them once, but another worker may receive a copy.
 * An answer without a connection is lost, and its call ends with `NO_ANSWER`. After the last
 * attempt all calls fail with BrokerError.
 */
export class ToolClient implements AsyncDisposable {
  readonly #agent: Agent;
  readonly #name: string;

  private constructor(agent: Agent, name: string) {
    this.#agent = agent;
    this.#name = name;
  }

  /**
   * Connects. Rejects with TypeError for unusable names, ConfigError for an unknown broker,
   * BrokerError after the last attempt or a permanent failure, or the signal's reason.
   */
  static async connect(options: ToolClientOptions): Promise<ToolClient> {
    const { namespace, name = defaultAgentName, signal = new AbortController().signal } = options;
    checkName("namespace", namespace, namespaceProblem(namespace));
    checkName("name", name, clientNameProblem(name));
    signal.throwIfAborted();
    const broker = await openBroker(options, name);
    const inbox = options.name ?? newInbox();
    return new ToolClient(await Agent.on(broker, { namespace, name, inbox }, signal), name);
  }

  /**
   * Calls a tool, and waits for at most its time limit and ten seconds. Retries an unroutable or
   * `TOOL_NOT_AVAILABLE` call once, after a second. Rejects with ToolCallError without a result,
   * RequestTooLargeError, TypeError and RangeError for bad options, BrokerError for a lost
   * connection, the error of `onStatus`, or the signal's reason.
   */
  async invoke(
    tool: string,
    args: JsonObject = {},
    options: InvokeOptions = {},
  ): Promise<ToolResult> {
    checkName("tool", tool, toolNameProblem(tool));
    checkTimeout(options.timeoutSeconds);
    const { artifacts = {}, onStatus, signal, ...more } = options;
    const identity = { userId: this.#name, sessionId: this.#name };
    const call = { tool, ...identity, ...more, ...stageArtifacts(artifacts, args) };
    const result = await this.#agent.call(call, {
      ...(onStatus && { onStatus }),
      ...(signal && { signal }),
    });
    return resultOf(tool, result);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent[Symbol.asyncDispose]();
  }
}

async function openBroker(options: ToolClientOptions, name: string): Promise<Broker> {
  const { broker, namespace, environment = {}, log = silentLog } = options;
  if (typeof broker !== "string") return broker;
  const { config } = chooseBroker(broker, { namespace, environment });
  const { connectRetries = config.connectRetries } = options;
  return openClientBroker(config, { namespace, name, connectRetries, log });
}

/** Throws ToolCallError without a result. */
function resultOf(tool: string, result: CallResult): ToolResult {
  const { correlationId, roundTripMs } = result;
  const failure = (code: ToolCallError["code"], message: string, data?: unknown): ToolCallError =>
    new ToolCallError(code, message, {
      tool,
      correlationId,
      data: isJsonObject(data) ? data : undefined,
    });
  switch (result.kind) {
    case "success": {
      const { toolResult, createdArtifacts, executionTimeMs } = result;
      return { toolResult, createdArtifacts, executionTimeMs, roundTripMs, correlationId };
    }
    case "error":
      throw failure(result.code, result.message, memberOf(result.response["error"], "data"));
    case "timed-out":
      throw failure("SANDBOX_TIMEOUT", result.message, result.response["result"]);
    case "unusable":
      throw failure("INVALID_RESPONSE", `The answer cannot be used: ${result.problem}`);
    case "no-answer":
      throw result.isUnroutable
        ? failure("UNROUTABLE", `The broker has nobody to give calls of ${tool} to`)
        : failure("NO_ANSWER", `Nobody answered within ${result.waitedSeconds} s`);
  }
}

function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) ? value[name] : undefined;
}

function checkName(what: string, text: string, problem: string | undefined): void {
  if (problem !== undefined) throw new TypeError(`The ${what} ${JSON.stringify(text)} ${problem}`);
}

function clientNameProblem(name: string): string | undefined {
  if (!/^\w*$/.test(name)) return "has characters other than A-Z a-z 0-9 _";
  if (name === "") return "is empty";
  return name.length > maxNameLength ? `is longer than ${maxNameLength} characters` : undefined;
}

function checkTimeout(seconds: number | undefined): void {
  if (seconds === undefined) return;
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > maxTimeoutSeconds) {
    throw new RangeError(`timeoutSeconds is ${seconds}; accepted: 1 to ${maxTimeoutSeconds}`);
  }
}
