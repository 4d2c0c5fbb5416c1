/**
 * Warnings of tools that a variable gives the host's network, or takes it from.
 */
import type { Config } from "../config/config.ts";
import type { Manifest } from "../manifest/manifest.ts";
import type { Profiles } from "../sandbox/profile.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";

/** What decides the network of tools. */
export type NetworkVariables = Pick<
  Config["sandbox"],
  "defaultProfile" | "defaultNetwork" | "hostNetwork"
>;

/** Warns of the tools of each manifest that the one before did not concern. */
export class HostNetworkWarnings {
  readonly #variables: NetworkVariables;
  readonly #profiles: Profiles;
  readonly #log: EventLog<"warn">;
  #named: ReadonlySet<string> = new Set();

  constructor(variables: NetworkVariables, profiles: Profiles, log: EventLog<"warn">) {
    this.#variables = variables;
    this.#profiles = profiles;
    this.#log = log;
  }

  /** To be called with each manifest that is served. */
  follow(manifest: Pick<Manifest, "tools">): void {
    const { defaultNetwork, hostNetwork } = this.#variables;
    const concerned = this.#concerned(manifest);
    const tools = concerned.filter((name) => !this.#named.has(name));
    this.#named = new Set(concerned);
    if (tools.length === 0) return;
    if (hostNetwork !== "host") logEvent(this.#log, "sandbox.host_network_replaced", { tools });
    else if (defaultNetwork === "host")
      logEvent(this.#log, "sandbox.host_network_default", { tools });
  }

  #concerned({ tools }: Pick<Manifest, "tools">): readonly string[] {
    const { defaultProfile, hostNetwork } = this.#variables;
    return [...tools.values()]
      .filter(({ network, profile = defaultProfile }) => {
        return (network ?? this.#profiles.get(profile)?.network) === "host";
      })
      .filter(({ network }) => hostNetwork !== "host" || network === undefined)
      .map(({ name }) => name);
  }
}
