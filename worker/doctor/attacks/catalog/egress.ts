/**
 * Attacks on a list of hosts: each tool may reach one service of the host, has to, and tries to
 * reach more. A template has no network, so none runs at an import.
 */
import type { Attack, Observation, Verdict } from "../attack.ts";
import { ownAnswer } from "../attack-verdict.ts";

/** The name service inside answers everything; what counts is whom the worker asks. */
function judgeAskedNames(observation: Observation): Verdict | undefined {
  const { askedNames, target, outcome } = observation;
  const leaked = askedNames.find((name) => name.toLowerCase().includes(target.token));
  if (leaked !== undefined)
    return { blocked: false, evidence: `the worker looked for the address of ${leaked}` };
  // It asked, and the worker heard it: else nothing was tried.
  const refusals = outcome.execution?.network?.refusals ?? [];
  const refused = refusals.filter(({ host }) => host.includes(target.token)).length;
  if (ownAnswer(observation) === undefined || refused === 0) return undefined;
  return { blocked: true, evidence: `nobody was asked; ${refused} names were refused` };
}

/** Most hosts have no such service: a worker that connects would look like one that does not. */
function judgeMetadataByName(observation: Observation): Verdict | undefined {
  const { target, outcome } = observation;
  const answer = ownAnswer(observation);
  if (answer === undefined || answer.reached) return undefined;
  const refusals = outcome.execution?.network?.refusals ?? [];
  const reasons = refusals.filter(({ host }) => host === target.metadataName);
  const [first, ...others] = reasons.map(({ reason }) => reason);
  if (first === "not-public" && others.length === 0)
    return { blocked: true, evidence: `${answer.evidence}; refused as ${first}` };
  const ends = [first ?? "no refusal", ...others].join(", ");
  return {
    blocked: false,
    evidence: `the worker does not refuse the address, but ends in ${ends}`,
  };
}

export const egressAttacks: readonly Attack[] = [
  {
    id: "reach_unlisted_addresses",
    group: "egress",
    title: "connect to an address that the list does not have, in every spelling",
    isFast: true,
  },
  {
    id: "reach_unlisted_metadata",
    group: "egress",
    title: "connect to the cloud's metadata service from behind a list",
    isFast: true,
  },
  {
    id: "reach_private_by_name",
    group: "egress",
    title: "have a listed name lead to an address that is not public",
    isFast: true,
  },
  {
    id: "reach_metadata_by_name",
    group: "egress",
    title: "have a listed name lead to the cloud's metadata service",
    isFast: true,
    judge: judgeMetadataByName,
  },
  {
    id: "rebind_name",
    group: "egress",
    title: "have a listed name lead to a public and a private address",
    isFast: true,
  },
  {
    id: "leak_by_names",
    group: "egress",
    title: "have name servers asked for a name that is not in the list",
    isFast: true,
    judge: judgeAskedNames,
  },
  {
    id: "reach_by_datagrams",
    group: "egress",
    title: "leave by UDP, ICMP, raw packets or an abstract socket",
    isFast: true,
  },
  {
    id: "name_another_in_tls",
    group: "egress",
    title: "ask a listed host for another name in TLS",
    isFast: true,
  },
  {
    id: "many_connections",
    group: "egress",
    title: "hold more connections than the list allows",
    isFast: true,
  },
  {
    id: "many_connections_in_all",
    group: "egress",
    title: "make more connections in all than a call may",
    isFast: false,
  },
  {
    id: "connect_by_proxy",
    group: "egress",
    title: "have the proxy connect to another port or address",
    isFast: true,
  },
  {
    id: "name_another_by_proxy",
    group: "egress",
    title: "ask a listed host for another name through the proxy",
    isFast: true,
  },
  {
    id: "smuggle_requests",
    group: "egress",
    title: "hide a request for another name in one to the proxy",
    isFast: true,
  },
  {
    id: "follow_redirect",
    group: "egress",
    title: "follow a redirection to a private address",
    isFast: true,
  },
  {
    id: "slow_header",
    group: "egress",
    title: "keep the proxy waiting for the end of headers",
    isFast: false,
  },
  {
    id: "endless_header",
    group: "egress",
    title: "send the proxy headers without an end",
    isFast: true,
  },
  {
    id: "reach_other_sandbox",
    group: "egress",
    title: "talk to what another call listens on",
    isFast: true,
    needsVictim: true,
  },
  {
    id: "change_routes",
    group: "egress",
    title: "change addresses and routes under the list",
    isFast: true,
  },
  {
    id: "change_name_service",
    group: "egress",
    title: "change the files of name service",
    isFast: true,
  },
];
