/**
 * The descriptions of the served tools: the manifest's parts, and for the others what the tool's
 * code says.
 */
import { isDeepStrictEqual } from "node:util";
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import type { PublishedDescription } from "../protocol/discovery/messages.ts";
import type { CallDescription, ToolDescription } from "../protocol/discovery/tool-description.ts";
import { InvocationError, failureFacts } from "../protocol/errors.ts";
import type { Clock } from "../support/clock.ts";
import type { JsonObject } from "../support/json/json.ts";
import { Semaphore } from "../support/semaphore.ts";
import { abortable, withTimeout } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { describedByManifest, isSameCode, needsCode, withManifest } from "./given.ts";
import { forCalls } from "./loosened.ts";

/** DescribedTools of code that are derived at once: each takes a sandbox beside those of calls. */
const maxDeriving = 2;
/** Requests with a configuration that wait for a derivation, at most. */
const maxWaitingRequests = 16;
/** Milliseconds for one derivation, with its wait. */
export const deriveTimeoutMs = 30_000;
/** Milliseconds for which a call waits for the first description of its tool. */
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

/** A tool's description. */
export interface Described {
  readonly tool: ToolEntry;
  /** The manifest's parts alone where the code gave none. */
  readonly description: PublishedDescription;
  /** What calls are held to; the description if it is not given. */
  readonly callDescription?: CallDescription;
  /** What the code gave. */
  readonly derived?: ToolDescription;
  /** Why the code gave none. */
  readonly failure?: InvocationError;
}

interface Known {
  readonly tool: ToolEntry;
  /** Never rejects, but for the disposal. */
  readonly settled: Promise<Described>;
  /** Until it is settled what was known before; undefined where nothing was. */
  current: Described | undefined;
  /** Infinity until it is settled. */
  retryAtMs: number;
  readonly failures: number;
}

/** Its owner disposes it, which ends running derivations. */
export class DescribedTools implements Disposable {
  readonly #parts: DescribedToolsParts;
  readonly #known = new Map<string, Known>();
  /** Undefined after a change. */
  #settled: readonly Described[] | undefined;
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
    for (const name of this.#known.keys()) if (!byName.has(name)) this.#forget(name);
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
      if (current?.failure !== undefined && retryAtMs <= nowMs) this.#begin(tool, failures + 1);
    }
  }

  /** Every description that is settled; another array after each change. */
  get settled(): readonly Described[] {
    this.#settled ??= [...this.#known.values()].flatMap(({ current }) => current ?? []);
    return this.#settled;
  }

  /** Calls the listener with each new description. Disposing the answer ends that. */
  onDescribed(listener: (described: Described) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /**
   * The description for a call: what was known before while code is asked again. While it is asked
   * first, the call waits for `patienceMs`, since a start of many tools takes long, and then has
   * the manifest's parts alone. Rejects with the signal's reason.
   */
  async forCall(
    tool: ToolEntry,
    signal: AbortSignal,
    patienceMs = callPatienceMs,
  ): Promise<CallDescription> {
    const known = this.#of(tool);
    if (known.current === undefined) {
      await withTimeout(patienceMs, this.#parts.clock, signal, (over) =>
        abortable(known.settled, over).catch(() => undefined),
      );
      signal.throwIfAborted();
    }
    const { callDescription, description } = known.current ?? {};
    return callDescription ?? description ?? describedByManifest(tool);
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
    const isConfigured = tool.callable.kind !== "function" && Object.keys(toolConfig).length > 0;
    if (describe === undefined || !isConfigured || !needsCode(tool)) {
      const known = this.#of(tool);
      const { description, failure } = known.current ?? (await abortable(known.settled, signal));
      if (failure !== undefined && saysNothing(description)) throw failure;
      return description;
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
    const { describe } = this.#parts;
    if (describe === undefined || !needsCode(tool)) {
      const current = { tool, description: describedByManifest(tool) };
      const settled = Promise.resolve(current);
      return this.#know({ tool, settled, current, retryAtMs: 0, failures }, current);
    }
    const isSuperseded = (): boolean => this.#known.get(tool.name) !== known;
    const settled = this.#derive(tool, describe, isSuperseded);
    const current = this.#before(tool, failures > 0);
    const known: Known = { tool, settled, current, retryAtMs: Infinity, failures };
    void settled.then(
      (described) => this.#settle(known, described),
      () => undefined,
    );
    return this.#know(known, undefined);
  }

  /**
   * What is known of a tool while its code is asked again. That the code could not be described
   * holds while the same is tried again.
   */
  #before(tool: ToolEntry, isRetry: boolean): Described | undefined {
    const before = this.#known.get(tool.name)?.current;
    if (before === undefined || !isSameCode(tool, before.tool)) return undefined;
    if (before.derived === undefined) return isRetry ? before : undefined;
    const isSame = isDeepStrictEqual(tool, before.tool);
    return isSame ? before : this.#describedBy(tool, before.derived);
  }

  #describedBy(tool: ToolEntry, derived: ToolDescription): Described {
    const description = withManifest(tool, derived, this.#parts.log);
    return { tool, description, callDescription: forCalls(tool, description), derived };
  }

  #settle(known: Known, described: Described): void {
    const delayMs = Math.min(retryMs.first * 2 ** known.failures, retryMs.most);
    known.retryAtMs = this.#parts.clock.monotonicMs() + delayMs;
    known.current = described;
    if (this.#known.get(known.tool.name) === known) this.#know(known, described);
  }

  #forget(name: string): void {
    this.#known.delete(name);
    this.#settled = undefined;
  }

  #know(known: Known, described: Described | undefined): Known {
    this.#known.set(known.tool.name, known);
    this.#settled = undefined;
    if (described !== undefined) for (const listener of this.#listeners) listener(described);
    return known;
  }

  /** A derivation whose turn comes after that of a newer one has its result. */
  async #derive(
    tool: ToolEntry,
    describe: DescribeTool,
    isSuperseded: () => boolean,
  ): Promise<Described> {
    {
      using _permit = await this.#deriving.acquire(this.#end.signal);
      if (!isSuperseded()) return await this.#ask(tool, describe);
    }
    const newer = this.#known.get(tool.name)?.settled;
    return (await newer) ?? { tool, description: describedByManifest(tool) };
  }

  async #ask(tool: ToolEntry, describe: DescribeTool): Promise<Described> {
    const { clock, log } = this.#parts;
    try {
      const derived = await withTimeout(deriveTimeoutMs, clock, this.#end.signal, (signal) =>
        describe(tool, signal),
      );
      return this.#describedBy(tool, derived);
    } catch (error) {
      this.#end.signal.throwIfAborted();
      const failure = asInvocationError(error);
      logEvent(log, "tool.not_described", { tool: tool.name, ...failureFacts(failure) });
      return { tool, description: describedByManifest(tool), failure };
    }
  }
}

/** Whether there is nothing to tell an agent. */
export function saysNothing({ description, parameters }: PublishedDescription): boolean {
  return description === undefined && parameters === undefined;
}

/** An error of a description as the publishable one that answers requests. */
export function asInvocationError(error: unknown): InvocationError {
  if (error instanceof InvocationError) return error;
  const message = "The worker could not describe the tool";
  return new InvocationError("INTERNAL_ERROR", message, { cause: error });
}
