/**
 * What a tool of a manifest may reach, as facts.
 */
import { isDeepStrictEqual } from "node:util";
import type { CredentialSources } from "../../worker/egress/edge/credential-sources.ts";
import type { ToolEntry } from "../../worker/manifest/manifest.ts";
import { isPublicOnly } from "../../worker/protocol/network-meet.ts";
import type { Network, NetworkRule } from "../../worker/protocol/network-rules.ts";
import type { Refusal } from "../../worker/protocol/refusal.ts";
import { chooseProfile } from "../../worker/sandbox/choose-profile.ts";
import { type Profile, type Profiles, withHostNetwork } from "../../worker/sandbox/profile.ts";
import { isolates } from "../../worker/sandbox/registry.ts";

/** The entry that decides a network. */
export type Source = "tool" | "profile";

export type NetworkVariable = "SANDBOX_DEFAULT_NETWORK" | "SANDBOX_HOST_NETWORK";

/** One list; a connection needs a rule of each. */
export interface ExplainedList {
  readonly from: Source;
  readonly rules: readonly NetworkRule[];
}

/** What a tool may reach. */
export interface Explanation {
  readonly tool: string;
  readonly profile: string;
  /** `unserved`: its backend cannot keep a tool to some hosts, so that workers do not serve it. */
  readonly network: "none" | "host" | "lists" | "unserved";
  /** What decides: both where both have lists. */
  readonly from: readonly Source[];
  /** The variable of the worker that decides what the network is. */
  readonly variable: NetworkVariable | undefined;
  /** Empty but for `lists`. */
  readonly lists: readonly ExplainedList[];
  /** At once; undefined but for `lists`. */
  readonly maxConnections: number | undefined;
  /** Why workers do not serve the tool, whatever its network is. */
  readonly refusal: Refusal | undefined;
}

/** What decides beside a tool's entry. */
export interface ExplainParts {
  readonly profiles: Profiles;
  /** The same where `SANDBOX_DEFAULT_NETWORK` is another one. */
  readonly otherProfiles: Profiles;
  readonly defaultProfile: string;
  /** What the network `host` stands for. */
  readonly hostNetwork: Network;
  /** What the operator allows. */
  readonly credentialSources: Pick<CredentialSources, "refuse">;
}

/** For a call that does not ask for a tighter profile. The profiles have all that are named. */
export function explain(tool: ToolEntry, parts: ExplainParts): Explanation {
  const base = profileOf(tool, parts.profiles, parts);
  const written = grantedTo(tool, base);
  const { name: profile, network } = withHostNetwork(written, parts.hostNetwork);
  const variable =
    network === written.network ? defaultVariable(tool, written, parts) : hostVariable;
  const refusal = parts.credentialSources.refuse(tool);
  const facts = { tool: tool.name, profile, variable, refusal };
  const nothing = { lists: [], maxConnections: undefined };
  const decider: Source = tool.network === undefined ? "profile" : "tool";
  if (!isolates(base)) {
    const word = typeof network === "string" ? "host" : "unserved";
    return { ...facts, ...nothing, network: word, from: ["profile"] };
  }
  if (typeof network === "string") return { ...facts, ...nothing, network, from: [decider] };
  const hasBoth = isList(base.network) && decider === "tool" && typeof tool.network !== "string";
  const fromProfile = new Set(hasBoth ? textsOf(base.network) : []);
  const lists = network.lists.map((rules): ExplainedList => {
    const isProfiles = hasBoth && rules.every(({ text }) => fromProfile.has(text));
    return { from: isProfiles ? "profile" : decider, rules };
  });
  const from: readonly Source[] = hasBoth ? ["profile", "tool"] : [decider];
  const { maxConnections } = network;
  return { ...facts, network: "lists", from, lists, maxConnections };
}

const hostVariable = "SANDBOX_HOST_NETWORK";

/** The variable of the default, where the tool would have another network with another default. */
function defaultVariable(
  tool: ToolEntry,
  { network }: Profile,
  parts: ExplainParts,
): NetworkVariable | undefined {
  const other = grantedTo(tool, profileOf(tool, parts.otherProfiles, parts)).network;
  return isDeepStrictEqual(other, network) ? undefined : "SANDBOX_DEFAULT_NETWORK";
}

function profileOf(
  { profile }: ToolEntry,
  profiles: Profiles,
  { defaultProfile }: ExplainParts,
): Profile {
  const found = profiles.get(profile ?? defaultProfile);
  if (found === undefined) throw new Error("the manifest names profiles that exist");
  return found;
}

function grantedTo(tool: ToolEntry, base: Profile): Profile {
  return chooseProfile({ manifest: base, fallback: base, overrides: tool, requested: undefined });
}

/** Whether a tool's network does not replace it. */
function isList(network: Network): boolean {
  return typeof network !== "string" && !isPublicOnly(network);
}

function textsOf(network: Network): readonly string[] {
  return typeof network === "string" ? [] : network.lists.flat().map(({ text }) => text);
}
