/**
 * What a tool of a manifest may reach, as facts.
 */
import type { ToolEntry } from "../../worker/manifest/manifest.ts";
import type { Network, NetworkRule } from "../../worker/protocol/network-rules.ts";
import { chooseProfile } from "../../worker/sandbox/choose-profile.ts";
import type { Profiles } from "../../worker/sandbox/profile.ts";
import { isolates } from "../../worker/sandbox/registry.ts";

/** What says it. */
export type Source = "tool" | "profile";

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
  /** What decides: more than one where both have lists. */
  readonly from: readonly Source[];
  /** Empty but for `lists`. */
  readonly lists: readonly ExplainedList[];
  /** At once; undefined but for `lists`. */
  readonly maxConnections: number | undefined;
}

/** What decides beside a tool's entry. */
export interface ExplainParts {
  readonly profiles: Profiles;
  readonly defaultProfile: string;
}

/** For a call that does not ask for a tighter profile. The profiles have all that are named. */
export function explain(tool: ToolEntry, { profiles, defaultProfile }: ExplainParts): Explanation {
  const base = profiles.get(tool.profile ?? defaultProfile);
  if (base === undefined) throw new Error("the manifest names profiles that exist");
  const choice = { manifest: base, fallback: base, overrides: tool, requested: undefined };
  const { name, network } = chooseProfile(choice);
  const nothing = { lists: [], maxConnections: undefined };
  const facts = { tool: tool.name, profile: name };
  if (!isolates(base)) {
    const word = typeof network === "string" ? "host" : "unserved";
    return { ...facts, ...nothing, network: word, from: ["profile"] };
  }
  if (typeof network === "string") {
    const from = [tool.network === undefined ? "profile" : "tool"] as const;
    return { ...facts, ...nothing, network, from };
  }
  const own = new Set(textsOf(tool.network));
  const lists = network.lists.map((rules): ExplainedList => {
    return { from: rules.every(({ text }) => own.has(text)) ? "tool" : "profile", rules };
  });
  const from = [...new Set(lists.map((list) => list.from))];
  return { ...facts, network: "lists", from, lists, maxConnections: network.maxConnections };
}

function textsOf(network: Network | undefined): readonly string[] {
  if (network === undefined || typeof network === "string") return [];
  return network.lists.flat().map(({ text }) => text);
}
