/**
 * Rules of a network's list that decide nothing, since another rule of it allows as much, or since
 * their name leads to the sandbox itself.
 */
import { isWithinRule } from "../../protocol/network-meet.ts";
import type { NetworkRule } from "../../protocol/network-rules.ts";

/** A rule without an effect. */
export interface DeadRule {
  /** In the list. */
  readonly index: number;
  /** The text of the rule that allows as much. */
  readonly wider: string;
}

/** The name by which programs reach their own machine: inside, that is the sandbox. */
const ownName = "localhost";

/** The problem of each rule of a list that has one, by its index. */
export function ruleWarnings(rules: readonly NetworkRule[]): ReadonlyMap<number, string> {
  const dead = deadRules(rules).map(
    ({ index, wider }) => [index, `has no effect beside ${wider}`] as const,
  );
  const own = rules.flatMap(({ host, ports }, index) => {
    if (host.kind !== "name" || host.name !== ownName) return [];
    const entry = `{ host: 127.0.0.1, ports: [${ports.join(", ")}], private: true }`;
    const message = `${ownName} is the sandbox itself; for the worker's host write ${entry}`;
    return [[index, message] as const];
  });
  return new Map([...dead, ...own]);
}

/** Those of a list; of two that are equal the later one. */
export function deadRules(rules: readonly NetworkRule[]): readonly DeadRule[] {
  return rules.flatMap((rule, index) => {
    const wider = rules.find(
      (other, at) =>
        at !== index && isWithinRule(rule, other) && (at < index || !isWithinRule(other, rule)),
    );
    return wider === undefined ? [] : [{ index, wider: wider.text }];
  });
}
