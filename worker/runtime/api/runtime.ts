/**
 * The runtime: chooses the backend of an execution by its profile.
 */
import { type ExecuteOptions, type RuntimeBackend, unsafeHost } from "./backend.ts";
import { RuntimeError } from "./errors.ts";
import {
  type ExecuteRequest,
  type RuntimeProfile,
  checkRequest,
  runtimeProfiles,
} from "./request.ts";
import type { ExecuteResult } from "./result.ts";

/** Where a runtime tells of its work. What it throws is ignored. */
export interface RuntimeLogger {
  info(message: string, facts: Readonly<Record<string, unknown>>): void;
  warn(message: string, facts: Readonly<Record<string, unknown>>): void;
  error(message: string, facts: Readonly<Record<string, unknown>>): void;
}

/** What a runtime is made with. */
export interface RuntimeOptions {
  /** Their owner disposes them after the last execution. */
  readonly backends?: Readonly<Partial<Record<RuntimeProfile, RuntimeBackend>>>;
  /** Profiles that never run on a backend without isolation; all but `dev` by default. */
  readonly denyUnsafeProfiles?: readonly RuntimeProfile[];
  /** The profile of requests that name none; without it they fail. */
  readonly defaultProfile?: RuntimeProfile;
  readonly logger?: RuntimeLogger;
}

const isolated: readonly RuntimeProfile[] = ["standard", "hardened"];

/** Executes code by the backends of its profiles. Safe for concurrent use. */
export class Runtime {
  readonly #backends = new Map<RuntimeProfile, RuntimeBackend>();
  readonly #denied: ReadonlySet<RuntimeProfile>;
  readonly #defaultProfile: RuntimeProfile | undefined;
  readonly #logger: RuntimeLogger | undefined;

  constructor(options: RuntimeOptions = {}) {
    const { backends = {}, denyUnsafeProfiles = isolated, defaultProfile, logger } = options;
    for (const profile of runtimeProfiles) {
      const backend = backends[profile];
      if (backend !== undefined) this.#backends.set(profile, backend);
    }
    this.#denied = new Set(denyUnsafeProfiles);
    this.#defaultProfile = defaultProfile;
    this.#logger = logger;
  }

  /** The backend of a profile; its owner stays who it was. Replaces an earlier one. */
  registerBackend(profile: RuntimeProfile, backend: RuntimeBackend): void {
    if (!runtimeProfiles.includes(profile)) throw new TypeError(`there is no profile ${profile}`);
    this.#backends.set(profile, backend);
  }

  /** Running executions go on. */
  unregisterBackend(profile: RuntimeProfile): void {
    this.#backends.delete(profile);
  }

  /** The backend that a request for this profile would run on. Throws as `execute` does. */
  backendFor(requested: RuntimeProfile | undefined): RuntimeBackend {
    const profile = this.#profileOf(requested);
    const backend = this.#backends.get(profile);
    if (backend === undefined) throw unavailable(`profile ${profile} has no backend`);
    if (backend.kind === unsafeHost && this.#denied.has(profile)) {
      const detail = `profile ${profile} may not run without isolation`;
      throw new RuntimeError("BACKEND_DENIED", { detail, op: "select", backend: backend.kind });
    }
    return backend;
  }

  /**
   * Executes code. Checks in this order: aborted, gateway, code, limits, profile, backend, denied.
   * Rejects with the signal's reason on abort, else with RuntimeError.
   */
  async execute(
    request: ExecuteRequest,
    { signal = neverAborts }: ExecuteOptions = {},
  ): Promise<ExecuteResult> {
    checkRequest(request, signal);
    const profile = this.#profileOf(request.profile);
    const backend = this.backendFor(profile);
    const { kind } = backend;
    const facts = { profile, backend: kind, language: request.language };
    if (kind === unsafeHost) this.#log("warn", "code runs without isolation", facts);
    try {
      const result = await backend.execute({ ...request, profile }, { signal });
      const { durationMs, toolCalls } = result;
      this.#log("info", "execution ended", { ...facts, durationMs, toolCalls: toolCalls.length });
      return result;
    } catch (error) {
      const code = error instanceof RuntimeError ? error.code : String(error);
      const isFault =
        !signal.aborted && (code === "RUNTIME_UNAVAILABLE" || !(error instanceof RuntimeError));
      const ended = { ...facts, code: signal.aborted ? "CANCELLED" : code };
      this.#log(isFault ? "error" : "info", "execution failed", ended);
      throw error;
    }
  }

  #profileOf(requested: RuntimeProfile | undefined): RuntimeProfile {
    const profile = requested ?? this.#defaultProfile;
    const named = profile === undefined ? "" : String(profile).slice(0, 40);
    if (profile === undefined) throw unavailable("no profile is named, and there is no default");
    if (runtimeProfiles.includes(profile)) return profile;
    throw unavailable(
      `there is no profile ${named}; the profiles are ${runtimeProfiles.join(", ")}`,
    );
  }

  #log(
    level: keyof RuntimeLogger,
    message: string,
    facts: Readonly<Record<string, unknown>>,
  ): void {
    try {
      this.#logger?.[level](message, facts);
    } catch {
      // An execution does not depend on the log.
    }
  }
}

const neverAborts = new AbortController().signal;

function unavailable(detail: string): RuntimeError {
  return new RuntimeError("RUNTIME_UNAVAILABLE", { detail, op: "select", retryable: false });
}
