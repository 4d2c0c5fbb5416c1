/**
 * Attacks on a list of hosts: each tool may reach one service of the host, has to, and tries to
 * reach more. A template has no network, so none runs at an import.
 */
import type { Attack } from "../attack.ts";

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
