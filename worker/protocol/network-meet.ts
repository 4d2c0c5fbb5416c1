/**
 * What two networks allow together, such as a tool's and a request's.
 */
import { isDeepStrictEqual } from "node:util";
import { type HostPattern, isInRange } from "./host-pattern.ts";
import type { Network, NetworkRule } from "./network-rules.ts";

type List = readonly NetworkRule[];

/** Whether it is public addresses, on whatever ports, and no list of hosts. */
export function isPublicOnly(network: Network): boolean {
  return typeof network !== "string" && network.lists.every(isPublicList);
}

/**
 * What both networks allow. Lists are not merged: each is asked, but for those that allow all that
 * another one allows. So a network that meets itself, or a wider one, stays as it is.
 */
export function meet(a: Network, b: Network): Network {
  if (a === "none" || b === "none") return "none";
  if (a === "host") return b;
  if (b === "host") return a;
  const lists: List[] = [];
  for (const list of [...a.lists, ...b.lists]) {
    if (lists.some((kept) => isWithinList(kept, list))) continue;
    const narrower = lists.filter((kept) => !isWithinList(list, kept));
    lists.splice(0, lists.length, ...narrower, list);
  }
  return { lists, maxConnections: Math.min(a.maxConnections, b.maxConnections) };
}

function isPublicList(rules: List): boolean {
  return rules.length === 1 && rules[0]?.host.kind === "any";
}

/** Whether each rule of a list is within one of the other. */
function isWithinList(list: List, other: List): boolean {
  return list.every((rule) => other.some((wider) => isWithinRule(rule, wider)));
}

/**
 * Whether a rule allows nothing that the other one does not. A member that is not known here has to
 * be equal.
 */
export function isWithinRule(rule: NetworkRule, wider: NetworkRule): boolean {
  return (
    isWithinHost(rule.host, wider.host) &&
    rule.ports.every((port) => wider.ports.includes(port)) &&
    (wider.allowsPrivate || !rule.allowsPrivate) &&
    (wider.allowsAnySni || !rule.allowsAnySni) &&
    isDeepStrictEqual(otherMembers(rule), otherMembers(wider))
  );
}

function otherMembers(rule: NetworkRule): object {
  const {
    text: _text,
    host: _host,
    ports: _ports,
    allowsPrivate: _allowsPrivate,
    allowsAnySni: _allowsAnySni,
    ...others
  } = rule;
  return others;
}

function isWithinHost(host: HostPattern, wider: HostPattern): boolean {
  if (wider.kind === "any") return true;
  if (host.kind === "any") return false;
  if (wider.kind === "range") {
    return host.kind === "range" && host.prefix >= wider.prefix && isInRange(wider, host.address);
  }
  if (host.kind === "range") return false;
  const isBelow = host.name.endsWith(`.${wider.name}`);
  const isSame = host.name === wider.name;
  switch (wider.kind) {
    case "name":
      return isSame && host.kind === "name";
    case "subdomains":
      return isBelow || (isSame && host.kind === "subdomains");
    case "domain":
      return isBelow || isSame;
  }
}
