/**
 * Rules of a network's list that decide nothing, since another rule of it allows as much.
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
