/**
 * The list of hosts that the connections of a run would have needed.
 */
import { stringify } from "yaml";
import type { RefusalReason } from "../../worker/protocol/execution.ts";
import type { EndedConnection } from "../../worker/sandbox/network/sockets.ts";

/** The port of an entry that names none. */
const defaultPort = 443;

/** Options of an entry that would let through what was refused for a reason. */
const missingOptions: Partial<Record<RefusalReason, string>> = {
  "not-public": "private: true",
  sni: "sni: any",
  "not-tls": "sni: any",
};

/** Field `network` of a manifest entry, in YAML: `none` where there was no connection. */
export function learnedNetwork(connections: readonly EndedConnection[]): string {
  const ports = new Map<string, Set<number>>();
  for (const { name, address, port, refusal } of connections) {
    const host = name ?? address;
    if (refusal !== undefined || host === undefined || port === undefined) continue;
    ports.set(host, (ports.get(host) ?? new Set()).add(port));
  }
  const allow = [...ports].map(([host, all]) => entryOf(host, [...all])).sort();
  return stringify({ network: allow.length === 0 ? "none" : { allow } }, { lineWidth: 0 });
}

/** What was refused all the same, one line for each host, port and reason. */
export function learnedRefusals(connections: readonly EndedConnection[]): readonly string[] {
  const lines = connections.flatMap(({ name, address, port, refusal }) => {
    if (refusal === undefined) return [];
    const host = name ?? address ?? "";
    const option = missingOptions[refusal];
    const entry = `{ host: ${host}, ports: [${port}], ${option} }`;
    const advice = option === undefined || port === undefined ? "" : `; it takes ${entry}`;
    return [`refused: ${port === undefined ? host : `${host}:${port}`}, ${refusal}${advice}`];
  });
  return [...new Set(lines)];
}

function entryOf(host: string, ports: readonly number[]): string {
  const sorted = ports.toSorted((a, b) => a - b);
  return sorted.length === 1 && sorted[0] === defaultPort ? host : `${host}:${sorted.join(",")}`;
}
