/**
 * Attacks on other processes of the host.
 */
import { startSeen } from "../attack-verdict.ts";
import type { Attack, Observation, Verdict } from "../attack.ts";
import { needsProc } from "./no-baseline.ts";

export const processesAttacks: readonly Attack[] = [
  {
    id: "inherited_environment",
    group: "processes",
    title: "find the worker's variables among its own",
    isFast: true,
  },
  {
    id: "inherited_descriptors",
    group: "processes",
    title: "use descriptors that were left open",
    isFast: true,
    notPromisedAtImport: "a template has a socket by which the worker tells it to make sandboxes",
    judge: judgeChannels,
  },
  {
    id: "first_process_environment",
    group: "processes",
    title: "read what variables the sandbox was started with",
    isFast: true,
    noBaseline: needsProc,
  },
  {
    id: "first_process_arguments",
    group: "processes",
    title: "read host paths on the sandbox's command line",
    isFast: false,
    noBaseline: needsProc,
  },
  {
    id: "worker_environment",
    group: "processes",
    title: "read variables of the worker and of others in /proc",
    isFast: true,
    noBaseline: needsProc,
  },
  {
    id: "list_host_processes",
    group: "processes",
    title: "see processes of the host",
    isFast: false,
  },
  {
    id: "list_template_processes",
    group: "processes",
    title: "see the processes of the template that its sandbox comes from",
    isFast: false,
    baseline: "naive-template",
    noBaseline: needsProc,
  },
  {
    id: "read_sibling_memory",
    group: "processes",
    title: "read the memory of another process through /proc",
    isFast: true,
    noBaseline: needsProc,
  },
  {
    id: "enter_sibling_root",
    group: "processes",
    title: "reach files and descriptors of another process",
    isFast: false,
    noBaseline: needsProc,
  },
];

/** A sandbox that has waited has the channel that its call came by. */
function judgeChannels(observation: Observation): Verdict | undefined {
  const { outcome } = observation;
  const count = outcome.kind === "success" ? Number(outcome.toolResult["channels"]) : 0;
  if (count <= Number(startSeen(observation) !== "cold")) return undefined;
  return { blocked: false, evidence: `${count} stream sockets that it has not opened` };
}
