/**
 * Decides what a sandbox may reach by the lists of its network.
 */
import { type HostPattern, isInRange, matchesName } from "../protocol/host-pattern.ts";
import type { NetworkPolicy, NetworkRule } from "../protocol/network-rules.ts";
import type { RequestRule } from "../protocol/request-rules.ts";

/** Where a sandbox connects to: a name that it asked for, or an address that it brought itself. */
export type Destination =
  | { readonly kind: "name"; readonly name: string; readonly port: number }
  | { readonly kind: "address"; readonly address: string; readonly port: number };

/** What the rules of every list that match grant together. */
export interface Grant {
  /** The texts of the rules, as in their files. */
  readonly rules: readonly string[];
  readonly allowsPrivate: boolean;
  readonly allowsAnySni: boolean;
  /**
   * The request rules of each list; undefined if no rule has any, so that the connection is not
   * opened.
   */
  readonly requests?: readonly (readonly RequestRule[])[] | undefined;
}

/** Whether some rule of each list allows the name on some port, so that it gets an address. */
export function knowsName({ lists }: NetworkPolicy, name: string): boolean {
  return lists.every((rules) => rules.some(({ host }) => matchesName(host, name)));
}

/** The grant of a connection; undefined if some list has no rule for it. */
export function grantFor({ lists }: NetworkPolicy, destination: Destination): Grant | undefined {
  const matching = lists.map((rules) => rules.filter((rule) => matches(rule, destination)));
  if (lists.length === 0 || matching.some((rules) => rules.length === 0)) return undefined;
  const inEach = (has: (rule: NetworkRule) => boolean): boolean =>
    matching.every((rules) => rules.some(has));
  const isOpened = matching.flat().some(({ requests }) => requests !== undefined);
  return {
    rules: [...new Set(matching.flatMap((rules) => rules.map(({ text }) => text)))],
    allowsPrivate: inEach(({ allowsPrivate }) => allowsPrivate),
    allowsAnySni: inEach(({ allowsAnySni }) => allowsAnySni) && !isOpened,
    ...(isOpened && {
      requests: matching.map((rules) => rules.map(({ requests = {} }) => requests)),
    }),
  };
}

/** Every port that some connection may have. */
export function portsOf({ lists }: NetworkPolicy): readonly number[] {
  const [first = [], ...others] = lists.map(
    (rules) => new Set(rules.flatMap(({ ports }) => ports)),
  );
  return [...first].filter((port) => others.every((ports) => ports.has(port)));
}

function matches({ host, ports }: NetworkRule, destination: Destination): boolean {
  if (!ports.includes(destination.port)) return false;
  return destination.kind === "name"
    ? matchesName(host, destination.name)
    : matchesAddress(host, destination.address);
}

function matchesAddress(host: HostPattern, address: string): boolean {
  return host.kind === "any" || (host.kind === "range" && isInRange(host, address));
}
