/**
 * Attacks on the gateway of a call, by which its tool calls others.
 */
import { isDeceptive } from "../../../support/text/deceptive.ts";
import { ownAnswer } from "../attack-verdict.ts";
import type { Attack, Observation, Verdict } from "../attack.ts";
import { leftProcesses } from "../left-processes.ts";
import type { ProgramAnswer } from "../../program.ts";
import { sharesNetwork } from "./network.ts";

/** Longest acceptable stall of the event loop on a busy machine, in milliseconds. */
const maxStallMs = 1_000;

const attacked: readonly Omit<Attack, "group" | "baseline" | "judge">[] = [
  {
    id: "call_unlisted_tools",
    title: "call and describe tools that its entry does not list, or that allow no programs",
    isFast: true,
  },
  {
    id: "call_as_another",
    title: "call a tool for another user, at another depth",
    isFast: true,
  },
  {
    id: "call_under_wider_profile",
    title: "call a tool under a wider profile",
    isFast: false,
    notPromised: ({ name, readsEtc }) =>
      readsEtc ? `the profile ${name} shows as much of /etc as any` : undefined,
  },
  {
    id: "recurse_by_calls",
    title: "call itself, through a tool that calls whatever it is told, deeper than it may",
    isFast: false,
    manifest: {
      allowed_callers: ["direct", "programmatic"],
      gateway: { tools: ["called.forwards"], max_depth: 2 },
    },
  },
  {
    id: "call_by_strange_names",
    title: "call tools by names that objects inherit, or that steer terminals",
    isFast: true,
  },
  {
    id: "take_channel",
    title: "call tools by the channel of another call",
    isFast: false,
    needsVictim: true,
    notPromised: sharesNetwork,
  },
  { id: "flood_calls", title: "ask without an end and read no answer", isFast: false },
  { id: "endless_request", title: "write a request without an end", isFast: false },
  {
    id: "outlive_by_calls",
    title: "leave a called tool running, and call another after the end",
    isFast: false,
    rounds: 2,
  },
  {
    id: "break_out_of_stubs",
    title: "have Python stubs hold code of a description, a name or a value",
    isFast: true,
  },
];

export const gatewayAttacks: readonly Attack[] = attacked.map((attack) => ({
  ...attack,
  group: "gateway",
  baseline: "naive-gateway",
  judge,
}));

/** Undefined without the program's answer, which counts unless the worker saw worse. */
function judge(observation: Observation): Verdict | undefined {
  const answer = ownAnswer(observation) ?? endByRefusals(observation);
  if (answer === undefined) return undefined;
  const faults = faultsOf(observation);
  const blocked = !answer.reached && faults.length === 0;
  return { blocked, evidence: [...faults, answer.evidence].join("; ") };
}

/** A tool that went on after its refusals reached nothing more. */
function endByRefusals({ outcome }: Observation): ProgramAnswer | undefined {
  const isEnded = outcome.kind === "error" && outcome.error.limit?.limit === "toolCalls";
  return isEnded ? { reached: false, evidence: outcome.error.message } : undefined;
}

function faultsOf({ outcome, longestStallMs, target }: Observation): readonly string[] {
  const execution = outcome.kind === "cancelled" ? undefined : outcome.execution;
  const calls = execution?.calls?.calls ?? [];
  const left = leftProcesses(target.token);
  return [
    ...(left.length > 0 ? [`processes ${left.join(", ")} left`] : []),
    ...(longestStallMs > maxStallMs ? ["the worker stood still"] : []),
    ...("polluted" in {} ? ["objects have inherited a member of the arguments"] : []),
    ...(calls.some(({ tool }) => isDeceptive(tool)) ? ["a record steers terminals"] : []),
  ];
}
