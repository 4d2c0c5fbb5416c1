/**
 * A gateway whose calls are counted, bounded and recorded.
 */
import {
  type ChainResult,
  type ChainStep,
  type DetailLevel,
  GatewayError,
  type RunResult,
  type ToolDoc,
  type ToolGateway,
  type ToolSummary,
} from "../../gateway/gateway.ts";
import { limitReached, maxRefusals } from "../../gateway/limits.ts";
import { defaultGatewayLimits } from "../../protocol/tool-calls/limits.ts";
import type { ToolExample } from "../../protocol/tool-calls/example.ts";
import { shownId } from "../../protocol/tool-calls/tool-id.ts";
import type { Clock } from "../../support/clock.ts";
import type { JsonObject } from "../../support/json/json.ts";
import type { BoundLimits } from "./limits.ts";
import type { ToolCallRecord } from "./tool-calls.ts";

/** Calls that are recorded; further ones are counted only. */
export const maxRecordedCalls = 1_000;

/** Questions of one execution. */
const { maxLookups } = defaultGatewayLimits;

/** The gateway of one execution. */
export class CountedGateway implements ToolGateway {
  readonly #gateway: ToolGateway;
  readonly #limits: Pick<BoundLimits, "maxToolCalls" | "maxChainSteps">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #over: AbortSignal;
  readonly #ended = new AbortController();
  readonly #records: ToolCallRecord[] = [];
  #calls = 0;
  #lookups = 0;
  #refusals = 0;

  /** @param over aborts what runs, and lets nothing start any more */
  constructor(
    gateway: ToolGateway,
    limits: Pick<BoundLimits, "maxToolCalls" | "maxChainSteps">,
    clock: Pick<Clock, "monotonicMs">,
    over: AbortSignal,
  ) {
    this.#gateway = gateway;
    this.#limits = limits;
    this.#clock = clock;
    this.#over = AbortSignal.any([over, this.#ended.signal]);
  }

  /** Aborts after `maxRefusals` refusals: the code is to be ended. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  get records(): readonly ToolCallRecord[] {
    return this.#records.map((record) => ({ ...record }));
  }

  searchTools(query: string, limit: number, signal: AbortSignal): Promise<readonly ToolSummary[]> {
    return this.#lookUp(signal, (ending) => this.#gateway.searchTools(query, limit, ending));
  }

  listNamespaces(signal: AbortSignal): Promise<readonly string[]> {
    return this.#lookUp(signal, (ending) => this.#gateway.listNamespaces(ending));
  }

  describeTool(id: string, level: DetailLevel, signal: AbortSignal): Promise<ToolDoc> {
    return this.#lookUp(signal, (ending) => this.#gateway.describeTool(id, level, ending));
  }

  listToolExamples(id: string, max: number, signal: AbortSignal): Promise<readonly ToolExample[]> {
    return this.#lookUp(signal, (ending) => this.#gateway.listToolExamples(id, max, ending));
  }

  async runTool(id: string, args: JsonObject, signal: AbortSignal): Promise<RunResult> {
    const ending = this.#enter(signal);
    this.#reserve(1);
    const startMs = this.#clock.monotonicMs();
    try {
      const result = await this.#gateway.runTool(id, args, ending);
      this.#record(id, startMs, undefined);
      return result;
    } catch (error) {
      this.#record(id, startMs, error);
      throw this.#counted(error);
    }
  }

  async runChain(steps: readonly ChainStep[], signal: AbortSignal): Promise<ChainResult> {
    const ending = this.#enter(signal);
    const bound = this.#limits.maxChainSteps;
    if (steps.length > bound) {
      const message = `A chain may have ${bound} steps; this one has ${steps.length}`;
      throw this.#refused(limitReached("max_chain_steps", bound, message));
    }
    this.#reserve(steps.length);
    const startMs = this.#clock.monotonicMs();
    try {
      const result = await this.#gateway.runChain(steps, ending);
      for (const { toolId } of steps) this.#record(toolId, startMs, undefined);
      return result;
    } catch (error) {
      const told = error instanceof GatewayError ? error.stepResults : undefined;
      // Where nobody says which steps ran, all may have.
      const ran = told ?? steps.map(({ toolId }) => ({ toolId, error }));
      for (const step of ran) this.#record(step.toolId, startMs, step.error && error);
      // A chain that stops early gives the rest back.
      this.#calls -= Math.max(0, steps.length - ran.length);
      throw this.#counted(error);
    }
  }

  async #lookUp<Found>(
    signal: AbortSignal,
    ask: (ending: AbortSignal) => Promise<Found>,
  ): Promise<Found> {
    const ending = this.#enter(signal);
    if (this.#lookups >= maxLookups) {
      const message = `The code may look up tools ${maxLookups} times`;
      throw this.#refused(limitReached("max_lookups", maxLookups, message));
    }
    this.#lookups++;
    return ask(ending);
  }

  /** The signal of an operation that starts now. Throws the reason of one that has aborted. */
  #enter(signal: AbortSignal): AbortSignal {
    const ending = AbortSignal.any([signal, this.#over]);
    ending.throwIfAborted();
    return ending;
  }

  #reserve(count: number): void {
    const bound = this.#limits.maxToolCalls;
    if (this.#calls + count > bound) {
      const message = `The code may make ${bound} calls, and has ${bound - this.#calls} left`;
      throw this.#refused(limitReached("max_tool_calls", bound, message));
    }
    this.#calls += count;
  }

  /** Ends code that goes on after many refusals, by the gateway that was brought, too. */
  #refused(error: GatewayError): GatewayError {
    this.#refusals++;
    if (this.#refusals >= maxRefusals) this.#ended.abort(error);
    return error;
  }

  #counted(error: unknown): unknown {
    const isRefusal = error instanceof GatewayError && error.code === "NOT_ALLOWED";
    return isRefusal ? this.#refused(error) : error;
  }

  #record(toolId: string, startMs: number, error: unknown): void {
    if (this.#records.length >= maxRecordedCalls) return;
    const errorOp =
      error === undefined ? undefined : error instanceof GatewayError ? error.op : "execute";
    const backendKind = error === undefined ? this.#gateway.backendKind : undefined;
    const durationMs = this.#clock.monotonicMs() - startMs;
    this.#records.push({ toolId: shownId(toolId), backendKind, durationMs, errorOp });
  }
}
