/**
 * `harness tool run --network learn`: a run that may reach every public host, and the list that
 * would have been enough for it.
 */
import {
  type NetworkPolicy,
  networkField,
  toNetwork,
} from "../../worker/protocol/network-rules.ts";
import type { EndedConnection, SandboxNetwork } from "../../worker/sandbox/network/sockets.ts";
import type { Profile } from "../../worker/sandbox/profile.ts";
import type { SandboxBackend } from "../../worker/sandbox/sandbox.ts";
import type { Screen } from "../invoke/screen.ts";
import { printable } from "../invoke/screen.ts";
import { learnedNetwork, learnedRefusals } from "./learned-list.ts";

/** Ports of services that tools use. A tool that connects to another one learns nothing of it. */
export const learnedPorts = [
  ...[21, 22, 25, 80, 110, 143, 389, 443, 465, 587, 636, 853, 993, 995, 1433, 1521, 1883, 2222],
  ...[3000, 3306, 3389, 4222, 5000, 5432, 5671, 5672, 6379, 6380, 6443, 7687, 8000, 8008, 8080],
  ...[8081, 8086, 8123, 8200, 8443, 8500, 8883, 8888, 9000, 9042, 9090, 9092, 9093, 9200, 9300],
  ...[9418, 9443, 10_000, 11_211, 15_672, 27_017, 50_051],
];

/** The network of a run that learns. */
export function learningNetwork(): NetworkPolicy {
  const field = { public: true, ports: learnedPorts, max_connections: 1_000 };
  const network = toNetwork(networkField.parse(field));
  if (typeof network === "string") throw new Error(`a list is no ${network}`);
  return network;
}

/** The backend with this network in each sandbox. The inner one stays its owner's. */
export function withNetwork(
  backend: SandboxBackend,
  network: NetworkPolicy,
  networkOf: (profile: Profile) => Promise<SandboxNetwork | undefined>,
): SandboxBackend {
  return {
    scratchDir: backend.scratchDir,
    facts: (profile) => backend.facts(profile),
    share: (directory) => backend.share(directory),
    acquire: async (request, signal) => {
      const profile = { ...request.profile, network };
      const [own, given] = [request.network?.environment, await networkOf(profile)];
      // Variables of the other network name what is not there.
      const others = [...request.environment].filter(([name]) => own?.has(name) !== true);
      const environment = new Map([...others, ...(given?.environment ?? [])]);
      return backend.acquire({ ...request, profile, environment, network: given }, signal);
    },
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

/** Says what a run has shown. */
export function reportLearned(connections: readonly EndedConnection[], err: Screen): void {
  const refusals = learnedRefusals(connections);
  for (const line of refusals) err.line(printable(line));
  const but = refusals.length === 0 ? "This run" : "Apart from what was refused, this run";
  err.line(`${but} would have needed in the tool's manifest entry:`);
  for (const line of learnedNetwork(connections).trimEnd().split("\n")) err.line(printable(line));
}
