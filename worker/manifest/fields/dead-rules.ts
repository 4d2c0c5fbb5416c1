/**
 * Rules of a network's list that decide nothing, since another rule of it allows as much.
 */
import { BlockList } from "node:net";
import { isDeepStrictEqual } from "node:util";
import type { HostPattern, NetworkRule } from "../../protocol/network-rules.ts";

/** A rule without an effect. */
export interface DeadRule {
  /** In the list. */
  readonly index: number;
  /** The text of the rule that allows as much. */
  readonly wider: string;
}

/** Those of a list; of two that are equal the later one. */
export function deadRules(rules: readonly NetworkRule[]): readonly DeadRule[] {
  return rules.flatMap((rule, index) => {
    const wider = rules.find(
      (other, at) =>
        at !== index && allowsAll(other, rule) && (at < index || !allowsAll(rule, other)),
    );
    return wider === undefined ? [] : [{ index, wider: wider.text }];
  });
}

/** Whether a rule grants all that the other one grants. */
function allowsAll(wide: NetworkRule, narrow: NetworkRule): boolean {
  return (
    namesAll(wide.host, narrow.host) &&
    narrow.ports.every((port) => wide.ports.includes(port)) &&
    (wide.allowsPrivate || !narrow.allowsPrivate) &&
    (wide.allowsAnySni || !narrow.allowsAnySni) &&
    isDeepStrictEqual(otherOptions(wide), otherOptions(narrow))
  );
}

/** An option that is new here may narrow a rule: two that differ in it both count. */
function otherOptions(rule: NetworkRule): object {
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

function namesAll(wide: HostPattern, narrow: HostPattern): boolean {
  if (wide.kind === "range") return narrow.kind === "range" && hasRange(wide, narrow);
  if (narrow.kind === "range") return false;
  const isBelow = narrow.name.endsWith(`.${wide.name}`);
  const isSame = narrow.name === wide.name;
  switch (wide.kind) {
    case "name":
      return isSame && narrow.kind === "name";
    case "subdomains":
      return isBelow || (isSame && narrow.kind === "subdomains");
    case "domain":
      return isBelow || isSame;
  }
}

type Range = Extract<HostPattern, { kind: "range" }>;

function hasRange(wide: Range, narrow: Range): boolean {
  if (narrow.prefix < wide.prefix) return false;
  const range = new BlockList();
  range.addSubnet(wide.address, wide.prefix, "ipv4");
  return range.check(narrow.address, "ipv4");
}
