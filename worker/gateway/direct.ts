/**
 * A gateway in this process: a catalog, a scope, a budget, and a function that runs calls.
 */
import { type Clock, systemClock } from "../support/clock.ts";
import { type NewId, newId } from "../support/ids.ts";
import type { JsonObject } from "../support/json/json.ts";
import { CallBudget, type CallReservation } from "./budget.ts";
import { type RunningRecord, type ToolCallRecord, cancelled, startRecord } from "./call-records.ts";
import type { Catalog, CatalogTool } from "./catalog.ts";
import { runSteps } from "./chain.ts";
import { type JsonCopy, type SizedResult, argumentsCopy, resultCopy } from "./copies.ts";
import { type Dispatch, gatewayErrorOf } from "./dispatch.ts";
import {
  type ArtifactPiece,
  type ChainResult,
  type ChainStep,
  type DetailLevel,
  GatewayError,
  type PieceRequest,
  type ProgramGateway,
  type RunResult,
  type ToolDoc,
  type ToolSummary,
  invalid,
  maxPieceBytes,
} from "./gateway.ts";
import type { ToolExample } from "../protocol/tool-calls/example.ts";
import { ReadPosition } from "./read-position.ts";
import { ToolSearch } from "./search.ts";
import { ToolScope, parseToolId, shownId } from "../protocol/tool-calls/tool-id.ts";

/** Reads an artifact of the program's session. Rejects as Dispatch does. */
export type LoadArtifact = (piece: PieceRequest, signal: AbortSignal) => Promise<ArtifactPiece>;

export interface DirectOptions {
  /** Ids, `namespace:*`, or `*`; all tools by default. */
  readonly allowed?: readonly string[];
  /** Patterns as in `allowed`: of those tools, the ones that a request asks for; all by default. */
  readonly requested?: readonly string[] | undefined;
  /** With the default limits by default. */
  readonly budget?: CallBudget;
  /** Gets each call when it ends, refused ones included. */
  readonly onCall?: (record: ToolCallRecord) => void;
  /** Without it, `loadArtifact` is `NOT_ALLOWED`. */
  readonly loadArtifact?: LoadArtifact;
  /** Of the catalog; shared by gateways, so that they share its index. */
  readonly search?: ToolSearch;
  readonly clock?: Clock;
  readonly newId?: NewId;
}

/** Runs calls by `dispatch`, within scope and budget. */
export class DirectGateway implements ProgramGateway {
  readonly #catalog: Catalog;
  readonly #dispatch: Dispatch;
  readonly #options: DirectOptions;
  readonly #scope: ToolScope;
  readonly #requested: ToolScope;
  readonly #budget: CallBudget;
  readonly #search: ToolSearch;
  readonly #clock: Clock;
  readonly #newId: NewId;
  readonly #position = new ReadPosition();

  /** Throws TypeError for a text in `allowed` or `requested` that is no pattern. */
  constructor(catalog: Catalog, dispatch: Dispatch, options: DirectOptions = {}) {
    this.#catalog = catalog;
    this.#dispatch = dispatch;
    this.#options = options;
    this.#scope = new ToolScope(options.allowed ?? ["*"]);
    this.#requested = new ToolScope(options.requested ?? ["*"]);
    this.#clock = options.clock ?? systemClock;
    this.#budget = options.budget ?? new CallBudget(undefined, { clock: this.#clock });
    this.#search = options.search ?? new ToolSearch(catalog);
    this.#newId = options.newId ?? newId;
  }

  async searchTools(
    query: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<readonly ToolSummary[]> {
    await this.#lookUp(signal);
    return this.#search.search(query, limit, (id) => this.#allows(id), signal);
  }

  async listNamespaces(signal: AbortSignal): Promise<readonly string[]> {
    await this.#lookUp(signal);
    const ids = this.#catalog.ids.filter((id) => this.#allows(id));
    const namespaces = new Set(ids.map((id) => parseToolId(id)?.namespace ?? ""));
    return [...namespaces].filter((namespace) => namespace !== "").sort();
  }

  async describeTool(id: string, level: DetailLevel, signal: AbortSignal): Promise<ToolDoc> {
    await this.#lookUp(signal);
    return this.#tool(id).document(level);
  }

  async listToolExamples(
    id: string,
    max: number,
    signal: AbortSignal,
  ): Promise<readonly ToolExample[]> {
    await this.#lookUp(signal);
    if (!isCount(max)) throw invalid("The number of examples is a whole number from 0 on");
    return this.#tool(id).examples().slice(0, max);
  }

  async runTool(id: string, args: JsonObject, signal: AbortSignal): Promise<RunResult> {
    await this.#budget.enter(signal);
    using reserved = this.#reserve(id, () => this.#budget.reserveCall());
    const input = argumentsCopy(args);
    using _permit = await this.#budget.run(signal);
    return (await this.#call(id, input, reserved, signal)).result;
  }

  async runChain(steps: readonly ChainStep[], signal: AbortSignal): Promise<ChainResult> {
    await this.#budget.enter(signal);
    const [first] = steps;
    if (first === undefined) {
      this.#budget.lookUp();
      return { structured: {}, artifacts: [], stepResults: [] };
    }
    using reserved = this.#reserve(first.toolId, () => this.#budget.reserveChain(steps.length));
    using _permit = await this.#budget.run(signal);
    const call = async (id: string, args: JsonObject): Promise<SizedResult> =>
      this.#call(id, argumentsCopy(args), reserved, signal);
    return await runSteps(steps, call, signal);
  }

  async loadArtifact(piece: PieceRequest, signal: AbortSignal): Promise<ArtifactPiece> {
    await this.#budget.enter(signal);
    const load = this.#options.loadArtifact;
    if (load === undefined) {
      const message = "The program may not load artifacts";
      throw this.#budget.refused(new GatewayError("NOT_ALLOWED", "resolve", message));
    }
    const problem = problemOf(piece);
    if (problem !== undefined) {
      this.#budget.lookUp();
      throw invalid(problem);
    }
    const { isNew, ended } = this.#position.start(piece);
    if (isNew) this.#budget.lookUp();
    // Who reads from another place reads what is before it, too.
    const skippedBytes = isNew ? piece.offset : 0;
    const settle = this.#budget.loadBytes(skippedBytes + piece.length);
    try {
      const loaded = await load({ ...piece }, signal);
      ended(loaded);
      settle(skippedBytes + loaded.bytes.byteLength);
      return loaded;
    } catch (error) {
      signal.throwIfAborted();
      throw gatewayErrorOf(error);
    }
  }

  #allows(id: string): boolean {
    return this.#scope.allows(id) && this.#requested.allows(id);
  }

  async #lookUp(signal: AbortSignal): Promise<void> {
    await this.#budget.enter(signal);
    this.#budget.lookUp();
  }

  /** The tool of an id in the scope. Throws the same for all others, there or not. */
  #tool(id: string): CatalogTool {
    const tool = this.#allows(id) ? this.#catalog.get(id) : undefined;
    if (tool !== undefined) return tool;
    const message = `The program may not call the tool ${shownId(id)}`;
    throw this.#budget.refused(new GatewayError("NOT_ALLOWED", "resolve", message));
  }

  /** Reserves calls; a refusal is recorded. */
  #reserve(id: string, reserve: () => CallReservation): CallReservation {
    try {
      return reserve();
    } catch (error) {
      this.#record(id, 0).end({ backend: undefined, error: gatewayErrorOf(error) });
      throw error;
    }
  }

  async #call(
    id: string,
    { value: args, sizeBytes }: JsonCopy<JsonObject>,
    reserved: CallReservation,
    signal: AbortSignal,
  ): Promise<SizedResult> {
    signal.throwIfAborted();
    reserved.start();
    const record = this.#record(id, sizeBytes);
    let backend: string | undefined;
    try {
      const tool = this.#tool(id).entry;
      const { callId, depth } = record.call;
      const returned = await this.#dispatch({ callId, tool, args, depth }, signal);
      ({ backend } = returned);
      signal.throwIfAborted();
      const called = resultCopy(returned);
      record.end({ backend, resultBytes: called.sizeBytes });
      return called;
    } catch (cause) {
      const error = gatewayErrorOf(cause);
      backend ??= error.backend;
      record.end({ backend, error: signal.aborted ? cancelled(signal) : error });
      signal.throwIfAborted();
      throw error;
    }
  }

  #record(id: string, argsBytes: number): RunningRecord {
    const depth = this.#budget.callDepth;
    const call = { callId: this.#newId(), toolId: shownId(id), depth, argsBytes };
    return startRecord(call, this.#clock, this.#options.onCall);
  }
}

/** Why there is no such piece of any artifact. */
function problemOf({ offset, length }: PieceRequest): string | undefined {
  if (!isCount(offset)) return "The offset of a piece is a whole number from 0 on";
  if (isCount(length) && length > 0 && length <= maxPieceBytes) return undefined;
  return `The length of a piece is a whole number from 1 to ${maxPieceBytes}`;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
