/**
 * The backends of a worker as one: each sandbox is made by the technology that its profile asks
 * for.
 */
import { type Profile, type Profiles, tightestProfile } from "./profile.ts";
import { type OpenerOptions, isolates, openBackend } from "./registry.ts";
import {
  type AheadOfCalls,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxFacts,
  type SandboxRequest,
  type SharedDirectory,
} from "./sandbox.ts";

/** Options of all backends together. */
export interface BackendsOptions extends OpenerOptions {
  /** What sandboxes will be asked for. */
  readonly profiles: Profiles;
  /** Whether profiles may ask for a backend that isolates nothing (`SANDBOX_ALLOW_UNSAFE`). */
  readonly allowUnsafe: boolean;
}

/**
 * Opens the backends that the profiles ask for; each finds out by trying whether it works here.
 * Either all are open or none. The caller owns what is returned. Throws SandboxError, also for a
 * profile that may not have the backend it asks for; rejects with the signal's reason.
 */
export async function openBackends(
  options: BackendsOptions,
  signal: AbortSignal = AbortSignal.any([]),
): Promise<SandboxBackend> {
  requireAllowed(options.profiles, options.allowUnsafe);
  await using opened = new AsyncDisposableStack();
  const byName = new Map<string, SandboxBackend>();
  for (const { backend } of options.profiles.values()) {
    if (!byName.has(backend))
      byName.set(backend, opened.use(await openBackend(backend, options, signal)));
  }
  const [first] = byName.values();
  if (first === undefined) throw new SandboxError("there is no profile");
  return new Backends(byName, first, opened.move());
}

/** Throws SandboxError where a profile has no isolation and may not do without. */
export function requireAllowed(profiles: Profiles, allowUnsafe: boolean): void {
  for (const profile of profiles.values()) refuseUnsafe(profile, allowUnsafe);
}

/** Throws SandboxError for a profile without isolation where that is not allowed. */
function refuseUnsafe(profile: Profile, allowUnsafe: boolean): void {
  if (isolates(profile)) return;
  const { name, backend } = profile;
  if (name === tightestProfile)
    throw new SandboxError(`the profile ${name} is never run without isolation`);
  if (allowUnsafe) return;
  const reason = `the backend ${backend} of the profile ${name} isolates nothing`;
  throw new SandboxError(`${reason}, and has to be allowed by 1`, { setting: "allowUnsafe" });
}

class Backends implements SandboxBackend {
  readonly #byName: ReadonlyMap<string, SandboxBackend>;
  /**
   * All backends run sandboxes as the same host user, so what one makes reachable every one can
   * use.
   */
  readonly #first: SandboxBackend;
  readonly #opened: AsyncDisposable;

  constructor(
    byName: ReadonlyMap<string, SandboxBackend>,
    first: SandboxBackend,
    opened: AsyncDisposable,
  ) {
    this.#byName = byName;
    this.#first = first;
    this.#opened = opened;
  }

  get scratchDir(): string {
    return this.#first.scratchDir;
  }

  share(path: string): Promise<SharedDirectory> {
    return this.#first.share(path);
  }

  facts(profile: Profile): SandboxFacts {
    return this.#of(profile).facts(profile);
  }

  aheadOf(profile: Profile): AheadOfCalls | undefined {
    return this.#of(profile).aheadOf?.(profile);
  }

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    return this.#of(request.profile).acquire(request, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }

  /**
   * Backends are open for the profiles that there are; a profile with another one is refused,
   * whatever it is.
   */
  #of(profile: Profile): SandboxBackend {
    refuseUnsafe(profile, this.#byName.has(profile.backend));
    const backend = this.#byName.get(profile.backend);
    if (backend === undefined)
      throw new SandboxError(`no profile of this worker has the backend ${profile.backend}`);
    return backend;
  }
}
