/**
 * A gateway whose calls are counted, bounded and recorded.
 */
import {
  type ChainResult,
  type ChainStep,
  GatewayError,
  type RunResult,
  type ToolGateway,
} from "../../gateway/gateway.ts";
import { limitReached, maxRefusals } from "../../gateway/limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { JsonObject } from "../../support/json/json.ts";
import type { BoundLimits } from "./limits.ts";
import type { ToolCallRecord } from "./tool-calls.ts";

/** Calls that are recorded; further ones are counted only. */
export const maxRecordedCalls = 1_000;

/** The gateway of one execution. */
export class CountedGateway implements ToolGateway {
  readonly #gateway: ToolGateway;
  readonly #limits: Pick<BoundLimits, "maxToolCalls" | "maxChainSteps">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #ended = new AbortController();
  readonly #records: ToolCallRecord[] = [];
  #calls = 0;
  #refusals = 0;

  constructor(
    gateway: ToolGateway,
    limits: Pick<BoundLimits, "maxToolCalls" | "maxChainSteps">,
    clock: Pick<Clock, "monotonicMs">,
  ) {
    this.#gateway = gateway;
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Aborts after `maxRefusals` refusals: the code is to be ended. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  get records(): readonly ToolCallRecord[] {
    return this.#records.map((record) => ({ ...record }));
  }

  searchTools(
    ...given: Parameters<ToolGateway["searchTools"]>
  ): ReturnType<ToolGateway["searchTools"]> {
    return this.#gateway.searchTools(...given);
  }

  listNamespaces(signal: AbortSignal): ReturnType<ToolGateway["listNamespaces"]> {
    return this.#gateway.listNamespaces(signal);
  }

  describeTool(
    ...given: Parameters<ToolGateway["describeTool"]>
  ): ReturnType<ToolGateway["describeTool"]> {
    return this.#gateway.describeTool(...given);
  }

  listToolExamples(
    ...given: Parameters<ToolGateway["listToolExamples"]>
  ): ReturnType<ToolGateway["listToolExamples"]> {
    return this.#gateway.listToolExamples(...given);
  }

  async runTool(id: string, args: JsonObject, signal: AbortSignal): Promise<RunResult> {
    signal.throwIfAborted();
    this.#reserve(1);
    const startMs = this.#clock.monotonicMs();
    try {
      const result = await this.#gateway.runTool(id, args, signal);
      this.#record(id, startMs, undefined);
      return result;
    } catch (error) {
      this.#record(id, startMs, error);
      throw this.#counted(error);
    }
  }

  async runChain(steps: readonly ChainStep[], signal: AbortSignal): Promise<ChainResult> {
    signal.throwIfAborted();
    const bound = this.#limits.maxChainSteps;
    if (steps.length > bound) {
      const message = `A chain may have ${bound} steps; this one has ${steps.length}`;
      throw this.#refused(limitReached("max_chain_steps", bound, message));
    }
    this.#reserve(steps.length);
    const startMs = this.#clock.monotonicMs();
    let ranSteps = 0;
    try {
      const result = await this.#gateway.runChain(steps, signal);
      ranSteps = steps.length;
      for (const { toolId } of steps) this.#record(toolId, startMs, undefined);
      return result;
    } catch (error) {
      const ran = error instanceof GatewayError ? (error.stepResults ?? []) : [];
      ranSteps = ran.length;
      for (const step of ran) this.#record(step.toolId, startMs, step.error && error);
      if (ranSteps === 0 && steps[0]) this.#record(steps[0].toolId, startMs, error);
      throw this.#counted(error);
    } finally {
      // A chain that stops early gives the rest back.
      this.#calls -= steps.length - Math.max(ranSteps, Math.min(1, steps.length));
    }
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
    const durationMs = this.#clock.monotonicMs() - startMs;
    this.#records.push({ toolId, backendKind: undefined, durationMs, errorOp });
  }
}
