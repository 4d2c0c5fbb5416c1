/**
 * The descriptions of the served tools: the manifest's parts, and for the others what the tool's
 * code says.
 */
import { isDeepStrictEqual } from "node:util";
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import type { PublishedDescription } from "../protocol/discovery/messages.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { Clock } from "../support/clock.ts";
import type { JsonObject } from "../support/json/json.ts";
import { Semaphore } from "../support/semaphore.ts";
import { abortable, withTimeout } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { describedByManifest, needsCode, withManifest } from "./given.ts";

/** DescribedTools of code that are derived at once: each takes a sandbox beside those of calls. */
const maxDeriving = 2;
/** Requests with a configuration that wait for a derivation, at most. */
const maxWaitingRequests = 16;
/** Milliseconds for one derivation, with its wait. */
export const deriveTimeoutMs = 30_000;
/** Milliseconds for which a call waits for the description of its tool. */
export const callPatienceMs = 10_000;
/** Milliseconds until a failed derivation is tried again, at first and at most. */
const retryMs = { first: 60_000, most: 3_600_000 };

/** Asks the code of a tool, in a sandbox. Throws InvocationError with a publishable message. */
export type DescribeTool = (
  tool: ToolEntry,
  signal: AbortSignal,
  toolConfig?: JsonObject,
) => Promise<ToolDescription>;

/** Dependencies of {@link DescribedTools}. */
export interface DescribedToolsParts {
  /** Undefined where tools are described by the manifest alone. */
  readonly describe?: DescribeTool | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A tool's description, or the reason why its code gave none. */
export type Described =
  | { readonly tool: ToolEntry; readonly description: PublishedDescription }
  | { readonly tool: ToolEntry; readonly failure: InvocationError };

interface Known {
  readonly tool: ToolEntry;
  /** Never rejects, but for the disposal. */
  readonly settled: Promise<Described>;
  /** Undefined until it is settled. */
  current: Described | undefined;
  retryAtMs: number;
  readonly failures: number;
}

/** Its owner disposes it, which ends running derivations. */
export class DescribedTools implements Disposable {
  readonly #parts: DescribedToolsParts;
  readonly #known = new Map<string, Known>();
  readonly #deriving = new Semaphore({ capacity: maxDeriving, maxWaiting: Infinity });
  readonly #withConfig = new Semaphore({ capacity: maxDeriving, maxWaiting: maxWaitingRequests });
  readonly #listeners = new Set<(described: Described) => void>();
  readonly #end = new AbortController();

  constructor(parts: DescribedToolsParts) {
    this.#parts = parts;
  }

  /** Describes these tools, and forgets others. Known tools by the same entry stay known. */
  follow(tools: Iterable<ToolEntry>): void {
    const byName = new Map(Array.from(tools, (tool) => [tool.name, tool]));
    for (const name of this.#known.keys()) if (!byName.has(name)) this.#known.delete(name);
    for (const tool of byName.values()) this.#of(tool);
  }

  /** Describes the tools of a language again, whose code changed. */
  codeChanged(runtime: Runtime): void {
    if (this.#parts.describe === undefined) return;
    for (const { tool } of this.#known.values())
      if (tool.runtime === runtime && needsCode(tool)) this.#begin(tool, 0);
  }

  /** Tries failed derivations again whose time has come. */
  retry(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const { tool, current, retryAtMs, failures } of this.#known.values()) {
      const hasFailed = current !== undefined && "failure" in current;
      if (hasFailed && retryAtMs <= nowMs) this.#begin(tool, failures + 1);
    }
  }

  /** Every description that is settled. */
  get settled(): readonly Described[] {
    return [...this.#known.values()].flatMap(({ current }) => current ?? []);
  }

  /** Calls the listener with each new description. Disposing the answer ends that. */
  onDescribed(listener: (described: Described) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /**
   * The description for a call. Undefined when the code gave none, or not in
   * {@link callPatienceMs}: the call then runs by itself. Rejects with the signal's reason.
   */
  async forCall(tool: ToolEntry, signal: AbortSignal): Promise<PublishedDescription | undefined> {
    const known = this.#of(tool);
    const described =
      known.current ??
      (await withTimeout(callPatienceMs, this.#parts.clock, signal, (over) =>
        abortable(known.settled, over).catch(() => undefined),
      ));
    signal.throwIfAborted();
    return described && "description" in described ? described.description : undefined;
  }

  /**
   * The description for a request. A class is asked with the request's configuration. Throws
   * InvocationError; `RESOURCE_EXHAUSTED` when too many requests wait.
   */
  async forRequest(
    tool: ToolEntry,
    toolConfig: JsonObject,
    signal: AbortSignal,
  ): Promise<PublishedDescription> {
    const { describe, clock } = this.#parts;
    const isConfigured = tool.callable.kind === "class" && Object.keys(toolConfig).length > 0;
    if (describe === undefined || !isConfigured || !needsCode(tool)) {
      const described = await abortable(this.#of(tool).settled, signal);
      if ("failure" in described) throw described.failure;
      return described.description;
    }
    return await withTimeout(deriveTimeoutMs, clock, signal, async (over) => {
      using _permit = await this.#withConfig.acquire(over);
      return withManifest(tool, await describe(tool, over, toolConfig), this.#parts.log);
    });
  }

  [Symbol.dispose](): void {
    this.#end.abort(new Error("descriptions are no longer needed"));
  }

  #of(tool: ToolEntry): Known {
    const known = this.#known.get(tool.name);
    if (known !== undefined && (known.tool === tool || isDeepStrictEqual(known.tool, tool)))
      return known;
    return this.#begin(tool, 0);
  }

  #begin(tool: ToolEntry, failures: number): Known {
    const { describe, clock } = this.#parts;
    const settled =
      describe === undefined || !needsCode(tool)
        ? Promise.resolve({ tool, description: describedByManifest(tool) })
        : this.#derive(tool, describe);
    const known: Known = { tool, settled, current: undefined, retryAtMs: 0, failures };
    this.#known.set(tool.name, known);
    void settled.then(
      (described) => {
        known.current = described;
        const delayMs = Math.min(retryMs.first * 2 ** failures, retryMs.most);
        known.retryAtMs = clock.monotonicMs() + delayMs;
        if (this.#known.get(tool.name) !== known) return;
        for (const listener of this.#listeners) listener(described);
      },
      () => undefined,
    );
    return known;
  }

  async #derive(tool: ToolEntry, describe: DescribeTool): Promise<Described> {
    const { clock, log } = this.#parts;
    using _permit = await this.#deriving.acquire(this.#end.signal);
    try {
      const derived = await withTimeout(deriveTimeoutMs, clock, this.#end.signal, (signal) =>
        describe(tool, signal),
      );
      return { tool, description: withManifest(tool, derived, log) };
    } catch (error) {
      this.#end.signal.throwIfAborted();
      logEvent(log, "tool.not_described", { tool: tool.name, err: error });
      return { tool, failure: asInvocationError(error) };
    }
  }
}

/** An error of a description as the publishable one that answers requests. */
export function asInvocationError(error: unknown): InvocationError {
  if (error instanceof InvocationError) return error;
  const message = "The worker could not describe the tool";
  return new InvocationError("INTERNAL_ERROR", message, { cause: error });
}
