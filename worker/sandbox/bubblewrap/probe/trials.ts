/**
 * Tries the variants of sandboxes that a host can refuse, with real sandboxes.
 */
import type { SystemDirectory } from "../../proc/host.ts";
import { type Profile, builtInProfiles } from "../../profile.ts";
import { type HardLimits, clampLimits, limitPrefix } from "../../rlimits.ts";
import { type ProcVariant, bwrapOptions, hostName, trialOptions } from "../argv.ts";
import { type TrialObservation, observe, trialProfile, trialScript } from "./probe-script.ts";
import type { Refusals } from "./probes.ts";
import { type OpenTrial, type Refusal, type TrialHost, openTrial, refusalOf } from "./trial.ts";

/** One variant of sandboxes. */
export interface Variant {
  readonly proc: ProcVariant;
  /** Whether bubblewrap limits user namespaces inside to zero. */
  readonly limitsNested: boolean;
  readonly hasNetworkNamespace: boolean;
  /** Whether sandboxes have their own host name. */
  readonly namesHost: boolean;
  readonly seccomp: Uint8Array | undefined;
}

/** Settings of all variants. */
export interface TrialBase {
  readonly systemDirectories: readonly SystemDirectory[];
  readonly hardLimits: HardLimits;
  readonly workDir: string;
}

/** The observations of a variant. */
export interface Shown {
  /** One of each profile. */
  readonly observations: readonly TrialObservation[];
  /** The refusal of a user namespace inside by the limit alone, or `made`. */
  readonly nestedWithoutFilter: string | undefined;
}

/** Trial sandboxes of one host, with one work directory. */
export class Trials {
  readonly #host: TrialHost;
  readonly #base: TrialBase;

  constructor(host: TrialHost, base: TrialBase) {
    this.#host = host;
    this.#base = base;
  }

  /**
   * Runs concurrent sandboxes of all profiles that the variant has a network for, and observes
   * them. Rejects with the signal's reason.
   */
  async show(variant: Variant): Promise<Shown | Refusal> {
    await using open = new AsyncDisposableStack();
    const profiles = [...builtInProfiles.values()]
      .filter(({ network }) => network === "host" || variant.hasNetworkNamespace)
      .map(trialProfile);
    const [nestedWithoutFilter, ...trials] = await allEnded([
      variant.limitsNested ? this.#nestInside(variant) : undefined,
      ...profiles.map(async (profile) => {
        const trial = await this.#open(profile, variant);
        return "refusal" in trial ? trial : open.use(trial);
      }),
    ]);
    const ready: { readonly profile: Profile; readonly trial: OpenTrial }[] = [];
    let refusal: string | undefined;
    for (const [index, profile] of profiles.entries()) {
      const trial = trials[index];
      if (trial === undefined) continue;
      if ("refusal" in trial) refusal ??= `profile ${profile.name}: ${trial.refusal}`;
      else ready.push({ profile, trial });
    }
    this.#host.signal.throwIfAborted();
    if (refusal !== undefined) return { refusal };
    const observations = await Promise.all(
      ready.map(({ profile, trial }) =>
        observe(
          trial,
          profile,
          clampLimits(profile.limits, this.#base.hardLimits),
          this.#base.workDir,
        ),
      ),
    );
    return { observations, nestedWithoutFilter };
  }

  /** Tries each feature in a minimal sandbox. Rejects with the signal's reason. */
  async refusals(seccomp: Variant["seccomp"]): Promise<Refusals> {
    const ask = (more: readonly string[], filter?: Uint8Array): Promise<string | undefined> =>
      refusalOf(this.#host, {
        options: [...trialOptions(this.#base.systemDirectories), ...more],
        argv: ["/usr/bin/true"],
        seccomp: filter,
      });
    const userNamespaces = await ask([]);
    this.#host.signal.throwIfAborted();
    if (userNamespaces !== undefined) return { userNamespaces };
    const [nestedLimit, freshProc, network, ownName, filter] = await allEnded([
      ask(["--disable-userns"]),
      ask(["--proc", "/proc"]),
      ask(["--unshare-net"]),
      ask(["--unshare-uts", ...hostName]),
      ask([], seccomp),
    ]);
    this.#host.signal.throwIfAborted();
    return { nestedLimit, freshProc, network, hostName: ownName, seccomp: filter };
  }

  #open(profile: Profile, variant: Variant): Promise<OpenTrial | Refusal> {
    return openTrial(this.#host, {
      options: this.#options(profile, variant),
      argv: [...this.#limits(profile), ...trialScript(`fill-${profile.name}`)],
      seccomp: variant.seccomp,
    });
  }

  /** The refusal of a user namespace inside by the limit alone, or `made`. */
  async #nestInside(variant: Variant): Promise<string> {
    const [profile] = [...builtInProfiles.values()].filter(({ network }) => network === "host");
    if (profile === undefined) throw new Error("no built-in profile has the host's network");
    const refusal = await refusalOf(this.#host, {
      options: this.#options(profile, variant),
      argv: ["/usr/bin/unshare", "--user", "/usr/bin/true"],
      seccomp: undefined,
    });
    return refusal ?? "made";
  }

  #options(profile: Profile, variant: Variant): readonly string[] {
    return bwrapOptions({
      profile,
      ...variant,
      systemDirectories: this.#base.systemDirectories,
      workDir: this.#base.workDir,
      mounts: [],
      devices: [],
      environment: new Map([
        ["PATH", "/usr/bin:/bin"],
        ["LC_ALL", "C"],
      ]),
    });
  }

  #limits(profile: Profile): readonly string[] {
    return limitPrefix(profile.limits, "address-space", this.#base.hardLimits);
  }
}

/** Promise.all after all have settled, so that a failure leaves no running work. */
async function allEnded<const Work extends readonly unknown[]>(
  work: Work,
): Promise<{ -readonly [Index in keyof Work]: Awaited<Work[Index]> }> {
  await Promise.allSettled(work);
  return Promise.all(work);
}
