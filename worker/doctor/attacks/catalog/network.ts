/**
 * Attacks on the host's network.
 */
import type { Profile } from "../../../sandbox/profile.ts";
import type { Attack } from "../attack.ts";

/** The reason when a profile has the host's network. */
export function sharesNetwork({ name, network }: Profile): string | undefined {
  return network === "host" ? `the profile ${name} has the host's network` : undefined;
}

export const networkAttacks: readonly Attack[] = [
  {
    id: "reach_loopback_service",
    group: "network",
    title: "talk to a service on the host's loopback address",
    isFast: true,
    notPromised: sharesNetwork,
  },
  {
    id: "reach_metadata_service",
    group: "network",
    title: "connect to the cloud's metadata service",
    isFast: false,
    notPromised: sharesNetwork,
  },
  {
    id: "reach_abstract_socket",
    group: "network",
    title: "talk to a Unix socket that has no file",
    isFast: true,
    notPromised: sharesNetwork,
  },
  {
    id: "reach_socket_file",
    group: "network",
    title: "talk to a Unix socket that is a file of the host",
    isFast: true,
  },
  {
    id: "open_raw_sockets",
    group: "network",
    title: "see or forge the host's packets",
    isFast: true,
  },
  {
    id: "reach_hypervisor",
    group: "network",
    title: "talk to the host of this virtual machine",
    isFast: false,
    noBaseline: () => "the kernel may have no vsock",
  },
  {
    id: "listen_on_host",
    group: "network",
    title: "listen on a port of the host",
    isFast: true,
    notPromised: sharesNetwork,
  },
  {
    id: "change_network",
    group: "network",
    title: "change the setup of the network",
    isFast: false,
  },
  {
    id: "resolve_names",
    group: "network",
    title: "ask the host's name servers",
    isFast: false,
    notPromised: sharesNetwork,
  },
];
