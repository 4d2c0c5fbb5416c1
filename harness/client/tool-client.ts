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
export type { Broker, BrokerLog, CreatedArtifact, JsonObject };
export type {
  ArtifactInput,
  ArtifactInputs,
  SentArtifact,
  StoredArtifact,
} from "./artifact-inputs.ts";
export type { ClientErrorCode } from "./tool-call-error.ts";

/**
 * Longest name of a client: with it and the longest namespace, topics of answers fit into what
 * brokers accept.
 */
const maxNameLength = 64;

/** How to connect. */
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
   * Letters, digits and `_`, at most 64; `harness` unless given. Clients that are given one name
   * get copies of each other's answers, and take only their own.
   */
  readonly name?: string;
  /**
   * The worker's variables for brokers, such as `AMQP_CA_FILE`, for what `broker` does not say.
   * None unless given.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /**
   * Attempts to connect, and to connect again after each loss; 0 is for ever. `CONNECT_RETRIES` of
   * `environment` unless given.
   */
  readonly connectRetries?: number;
  /** Told what happens to the connection; nobody unless given. */
  readonly log?: BrokerLog;
  /** Ends the wait for the first connection. */
  readonly signal?: AbortSignal;
}

/** How to make a call. */
export interface InvokeOptions {
  /**
   * By parameter name. Parameters that the arguments do not have get the filename, or the list of
   * filenames.
   */
  readonly artifacts?: ArtifactInputs;
  /**
   * Told each status text of the tool, in order, before the result. What it throws fails the call.
   */
  readonly onStatus?: (text: string) => void;
  /** Ends the wait; a tool that runs goes on. */
  readonly signal?: AbortSignal;
  /** Whole seconds that the tool may take, 1 to 86400; 300 unless given. */
  readonly timeoutSeconds?: number;
  /** Configuration of the tool; may hold secrets. */
  readonly toolConfig?: JsonObject;
  /** Sandbox profile to ask for; `standard` unless given. */
  readonly profile?: string;
  /**
   * On whose behalf; user and session say whose artifacts they are. The client's name unless given.
   */
  readonly userId?: string;
  readonly sessionId?: string;
}

/** What a tool returned. */
export interface ToolResult {
  readonly toolResult: JsonObject;
  /** The files it made, in the worker's store. */
  readonly createdArtifacts: readonly CreatedArtifact[];
  /** Milliseconds in the worker. */
  readonly executionTimeMs: number;
  /** Milliseconds from before the publication to the answer. */
  readonly roundTripMs: number;
  /** The id of the call in logs. */
  readonly correlationId: string;
}

/**
 * A connected client. Any number of calls share its connection, at most 10,000 at once. Its owner
 * disposes it; that fails the calls on their way.
 *
 * A connection that is lost is made again by the worker's policy: attempts with growing, random
 * delays, `connectRetries` of them. Calls wait meanwhile, in their time. A request that the broker
 * had not confirmed is sent again, under the same id: a worker that has got it already does not run
 * it again, but another worker may get it. An answer that is published while there is no connection
 * reaches nobody; such a call ends with `NO_ANSWER`. When the attempts are used up, all calls fail
 * with BrokerError, now and later.
 */
export class ToolClient implements AsyncDisposable {
  readonly #agent: Agent;
  readonly #name: string;

  private constructor(agent: Agent, name: string) {
    this.#agent = agent;
    this.#name = name;
  }

  /**
   * Connects. Throws TypeError for names that cannot be used, ConfigError for a broker that is not
   * understood, BrokerError when no attempt is left or another would not help, or the signal's
   * reason. Leaves nothing open then.
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
   * Calls a tool and waits for its result: its time and ten seconds at most. A call answered
   * `TOOL_NOT_AVAILABLE`, or that the broker has nobody for, is made once more after a second.
   *
   * Throws ToolCallError when there is no result, RequestTooLargeError, TypeError and RangeError
   * for what cannot be asked for, BrokerError when the connection is lost for good, what `onStatus`
   * throws, or the signal's reason.
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

/** Throws ToolCallError unless there is one. */
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
