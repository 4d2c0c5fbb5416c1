/**
 * A backend of the library over a sandbox technology: a worker's path of a call, without a broker.
 */
import { readConfig } from "../../config/config.ts";
import type { Invoker } from "../../invocation/call-context.ts";
import type { ToolEntry } from "../../manifest/manifest.ts";
import type { LimitName, Limits } from "../../protocol/resource-limits.ts";
import { programLanguages } from "../../protocol/tool-calls/program.ts";
import { maxCodeBytes } from "../../protocol/tool-calls/program-limits.ts";
import {
  type Executed,
  type Execution,
  type RuntimeBackend,
  defineBackend,
  unsafeHost,
} from "../../runtime/api/backend.ts";
import { RuntimeError } from "../../runtime/api/errors.ts";
import type { BoundLimits, Evidence } from "../../runtime/api/limits.ts";
import { type RuntimeProfile, maxTimeoutMs } from "../../runtime/api/request.ts";
import type { Readiness } from "../../runtime/api/result.ts";
import type { SandboxedOptions } from "../../runtime/api/sandboxed-options.ts";
import { BroughtGateways } from "../../runtime/brought-gateways.ts";
import type { Profiles } from "../../sandbox/profile.ts";
import { newId } from "../../support/ids.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { createFunctionGateway } from "../../runtime/api/function-gateway.ts";
import { wireInvoker } from "../calls.ts";
import { openFoundation } from "../foundation.ts";
import { createHost } from "../host.ts";
import { sandboxUid } from "../sandboxes.ts";
import { type RuntimeSettings, makeRuntimeHome, programEntry } from "./environment.ts";
import { sweepHomes } from "./homes.ts";
import { backendLog } from "./log.ts";
import { closed, executedOf } from "./outcome.ts";
import {
  type Hardening,
  keptProfiles,
  runtimeSandboxProfiles,
  sandboxProfileName,
} from "./profiles.ts";
import { type TriedInterpreter, heldByAll, tryLimits } from "./trials.ts";

/** What a technology is in the library. */
export interface SandboxTechnology {
  readonly kind: string;
  /** Its name in worker/sandbox/registry.ts. */
  readonly backend: string;
  readonly readiness: Readiness;
  readonly hardening: Hardening;
}

/** Seconds that a sandbox has beyond an execution's time, which ends it before. */
const spareSeconds = 10;
/** Seconds for one trial. */
const trialSeconds = 15;

/**
 * Opens a technology and tries its limits. The caller owns the backend. Throws RuntimeError
 * `RUNTIME_UNAVAILABLE` where the host cannot run it; the signal's reason.
 *
 * @param log of a worker, in place of the options' logger
 */
export async function openSandboxed(
  technology: SandboxTechnology,
  options: SandboxedOptions = {},
  log: Logger = backendLog(options.logger, technology.kind === unsafeHost ? "error" : "warn"),
): Promise<RuntimeBackend> {
  const { kind, readiness, hardening } = technology;
  const { signal = new AbortController().signal } = options;
  await using stack = new AsyncDisposableStack();
  try {
    const code = stack.use(await openCode(technology, options, { log, signal }));
    const evidence = await code.tryLimits(signal);
    const { languages, facts } = code;
    const owned = stack.move();
    return defineBackend({
      ...{ kind, languages, readiness, evidence, maxCodeBytes, details: facts },
      profiles: keptProfiles(hardening),
      run: (execution, ending) => code.run(execution, ending),
      close: () => owned.disposeAsync(),
    });
  } catch (cause) {
    signal.throwIfAborted();
    const detail = `${kind} cannot be used on this host`;
    throw new RuntimeError("RUNTIME_UNAVAILABLE", { detail, cause, op: "open", backend: kind });
  }
}

async function openCode(
  { kind, backend, hardening }: SandboxTechnology,
  options: SandboxedOptions,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<SandboxedCode> {
  await using stack = new AsyncDisposableStack();
  const settings: RuntimeSettings = {
    languages: options.languages ?? programLanguages,
    defaultProfile: sandboxProfileName("standard"),
    maxConcurrent: options.maxConcurrent ?? 4,
    maxQueued: options.maxQueued ?? 1_000,
    warm: options.warm ?? { min: 0, max: 4 },
    allowUnsafe: kind === unsafeHost,
    modules: options.modules ?? {},
    variables: options.variables ?? {},
  };
  const { environment, base: basesBelow } = stack.use(await makeRuntimeHome(settings));
  const read = readConfig(environment);
  // The file of profiles is for those of manifests.
  const sandbox = { ...read.sandbox, defaultProfile: settings.defaultProfile };
  const config = { ...read, sandbox };
  await sweepHomes(basesBelow, sandboxUid(config), (error) =>
    logEvent(log, "work_directory.remove_failed", { err: error }),
  );
  const host = createHost(log, environment);
  const profiles = runtimeSandboxProfiles(backend, hardening);
  const foundation = stack.use(
    await openFoundation(config, host, signal, { profiles, basesBelow }),
  );
  const unavailable = foundation.catalog.unavailable(programEntry);
  if (unavailable !== undefined) throw new Error(unavailable.reason);
  const base = foundation.catalog.resolve(programEntry);
  if (base === undefined) throw new Error("the entry for code is not served");
  const entries = new CodeEntries(base, profiles);
  const gateways = new BroughtGateways(foundation.backend.scratchDir);
  const { manifest } = foundation.catalog;
  const catalog = { manifest, resolve: (name: string) => entries.resolve(name) };
  const { invoker, starts, checker } = wireInvoker(
    config,
    host,
    { ...foundation, catalog },
    { gateways },
  );
  stack.use(checker);
  stack.use(starts).follow([...entries.usual]);
  const profile = profiles.get(settings.defaultProfile);
  const technology = profile && foundation.backend.facts(profile).technology;
  const facts = { technology: technology ?? backend };
  const { languages } = settings;
  const owned = stack.move();
  return new SandboxedCode(
    { invoker, entries, gateways, log, facts, languages: languages as [string, ...string[]] },
    owned,
  );
}

/** The entries of executions, by name: those with the profiles' limits wait for executions. */
class CodeEntries {
  readonly #base: ToolEntry;
  readonly #profiles: Profiles;
  readonly #entries = new Map<string, ToolEntry>();

  constructor(base: ToolEntry, profiles: Profiles) {
    this.#base = base;
    this.#profiles = profiles;
    for (const profile of ["dev", "standard", "hardened"] as const)
      this.#entries.set(sandboxProfileName(profile), this.#entry(profile, {}));
  }

  /** Those whose sandboxes can wait. */
  get usual(): Iterable<ToolEntry> {
    return this.#entries.values();
  }

  resolve(name: string): ToolEntry | undefined {
    return this.#entries.get(name);
  }

  /** The entry of an execution. Disposed after it. */
  take(profile: RuntimeProfile, limits: Partial<Limits>): Disposable & { readonly name: string } {
    if (Object.keys(limits).length === 0)
      return { name: sandboxProfileName(profile), [Symbol.dispose]: () => undefined };
    const name = `${sandboxProfileName(profile)}-${newId()}`;
    this.#entries.set(name, this.#entry(profile, limits));
    return { name, [Symbol.dispose]: () => void this.#entries.delete(name) };
  }

  #entry(profile: RuntimeProfile, limits: Partial<Limits>): ToolEntry {
    const name = sandboxProfileName(profile);
    // A request never widens a profile.
    const own = this.#profiles.get(name)?.limits;
    const least = Object.entries(limits).map(([limit, bound]) => [
      limit,
      Math.min(bound, own?.[limit as LimitName] ?? bound),
    ]);
    const bounds = Object.fromEntries(least) as Partial<Limits>;
    return { ...this.#base, name, profile: name, limits: bounds };
  }
}

interface CodeParts {
  readonly invoker: Invoker;
  readonly entries: CodeEntries;
  readonly gateways: BroughtGateways;
  readonly log: Logger;
  readonly facts: { readonly technology: string };
  readonly languages: readonly [string, ...string[]];
}

/** Runs code by the invoker. */
class SandboxedCode implements AsyncDisposable {
  readonly facts: CodeParts["facts"];
  readonly languages: CodeParts["languages"];
  readonly #parts: CodeParts;
  readonly #owned: AsyncDisposable;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  readonly #evidence = new Map<TriedInterpreter, Evidence>();

  constructor(parts: CodeParts, owned: AsyncDisposable) {
    this.facts = parts.facts;
    this.languages = parts.languages;
    this.#parts = parts;
    this.#owned = owned;
  }

  async run(execution: Execution, signal: AbortSignal): Promise<Executed> {
    const { profile = "standard", timeoutMs, limits } = execution;
    using entry = this.#parts.entries.take(profile, sandboxLimits(limits));
    const outcome = await this.#invoke(entry.name, execution, timeoutMs / 1000, signal);
    const evidence = this.#evidence.get(interpreterOf(execution.language));
    return { ...executedOf(outcome), ...(evidence && { evidence }) };
  }

  /**
   * Tries each interpreter's limits, and returns those that all are held to. Rejects with the
   * signal's reason.
   */
  async tryLimits(signal: AbortSignal): Promise<Evidence> {
    const gateway = createFunctionGateway([]);
    const tried = new Map(this.languages.map((language) => [interpreterOf(language), language]));
    const trying = [...tried].map(async ([interpreter, language]) => {
      const evidence = await tryLimits(interpreter, async (code, limits) => {
        using entry = this.#parts.entries.take("standard", limits);
        return this.#invoke(entry.name, { code, language, gateway }, trialSeconds, signal);
      });
      this.#evidence.set(interpreter, evidence);
      return evidence;
    });
    const evidence = await Promise.all(trying);
    signal.throwIfAborted();
    return heldByAll(evidence);
  }

  async #invoke(
    toolName: string,
    { code, language, gateway }: Pick<Execution, "code" | "language" | "gateway">,
    seconds: number,
    signal: AbortSignal,
  ) {
    if (this.#closing.signal.aborted) throw closed();
    const { invoker, gateways, log } = this.#parts;
    const id = newId();
    using _brought = gateways.bring(id, gateway);
    const invocation = {
      ...{ id, taskId: id, toolName, args: { code, language }, toolConfig: {} },
      caller: { appName: "runtime", userId: "runtime", sessionId: "runtime" },
      ...{ references: new Map(), preloaded: new Map() },
      // A timer cannot wait longer.
      timeoutSeconds: Math.min(seconds + spareSeconds, maxTimeoutMs / 1000),
      ...{ requestedProfile: undefined, replyTo: "runtime", statusTo: undefined },
      sentAtMs: Date.now(),
    };
    const running = invoker.invoke(invocation, {
      ...{ signal: this.#closing.signal, waitSignal: this.#closing.signal, cancelSignal: signal },
      ...{ log, onStatus: () => undefined },
    });
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the backend is closed"));
    await Promise.all(this.#running);
    await this.#owned[Symbol.asyncDispose]();
  }
}

/** The limits of a request in those of its sandbox; a profile's own is never widened. */
function sandboxLimits(limits: BoundLimits): Partial<Limits> {
  const { memoryBytes, cpuQuotaMillis, pidsMax, diskBytes } = limits;
  const given = {
    memoryBytes,
    cpuSeconds: cpuQuotaMillis / 1000,
    processes: pidsMax,
    diskBytes,
  };
  return Object.fromEntries(Object.entries(given).filter(([, bound]) => bound !== Infinity));
}

function interpreterOf(language: string): TriedInterpreter {
  return language === "python" ? "python" : "node";
}
