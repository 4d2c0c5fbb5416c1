/**
 * What a tool may reach, in words.
 */
import type { HostPattern } from "../../worker/protocol/host-pattern.ts";
import type { NetworkRule } from "../../worker/protocol/network-rules.ts";
import type { RequestRule } from "../../worker/protocol/request-rules.ts";
import type { Explanation, Source } from "./explain.ts";

/** What no list opens. */
const neverReached = [
  "Never reached: the worker's broker, its object store and its own HTTP port.",
  "Only where an entry says so: private, loopback, link-local, shared and metadata addresses, and those of this host.",
  "There is no UDP but for name service, and no IPv6 inside.",
];

/** Several lines, the first with the tool. */
export function wordsOf(explanation: Explanation): readonly string[] {
  const { refusal } = explanation;
  const refused = refusal && `A worker with these variables does not serve it: ${refusal.reason}.`;
  return [...networkWords(explanation), ...(refused === undefined ? [] : [refused])];
}

function networkWords(explanation: Explanation): readonly string[] {
  const { tool, profile, network, from, variable, lists, maxConnections } = explanation;
  const decided = variable === undefined ? [] : [`${variable} decides that.`];
  const by = from.map((source) => nameOf(source, profile)).join(" and ");
  switch (network) {
    case "none":
      return [`${tool} reaches nothing, by ${by}: no host, no service of this host, no name.`];
    case "host":
      return [
        `${tool} reaches all that this host reaches, by ${by}: public and private addresses, loopback services, metadata of clouds, and the broker.`,
        ...decided,
      ];
    case "unserved":
      return [
        `${tool} is not served: ${by} has a backend that isolates nothing, and cannot keep a tool to some hosts.`,
      ];
    case "lists":
      return [
        `${tool} reaches these hosts and nothing else, by ${by}:`,
        ...lists.flatMap(({ from: source, rules }) => {
          const heading = lists.length > 1 ? [`Of ${nameOf(source, profile)}:`] : [];
          return [...heading, ...rules.map((rule) => `  ${ruleWords(rule)}`)];
        }),
        ...decided,
        ...(lists.length > 1 ? ["A connection needs an entry of each list."] : []),
        `At most ${maxConnections} connections at once.`,
        ...neverReached,
      ];
  }
}

/** An entry of a list. */
export function ruleWords(rule: NetworkRule): string {
  const { host, ports, allowsPrivate, allowsAnySni, requests } = rule;
  const options = [
    ...(requests === undefined ? [] : [requestWords(requests)]),
    ...(allowsPrivate ? ["also at addresses that are not public"] : []),
    ...(allowsAnySni ? ["with any name in TLS, or without TLS"] : []),
  ];
  return [`${hostWords(host)} on ${portWords(ports)}`, ...options].join(", ");
}

function requestWords({ methods, paths, credential }: RequestRule): string {
  const of = paths === undefined ? "" : ` for ${paths.join(", ")}`;
  const added = credential === undefined ? "" : ` with the credential ${credential.name}`;
  return `requests${methods === undefined ? "" : ` ${methods.join(", ")}`}${of}${added}, opened by the worker`;
}

function hostWords(host: HostPattern): string {
  switch (host.kind) {
    case "any":
      return "every public host";
    case "name":
      return host.name;
    case "subdomains":
      return `every name below ${host.name}`;
    case "domain":
      return `${host.name} and every name below it`;
    case "range":
      return host.prefix === 32 ? host.address : `addresses of ${host.address}/${host.prefix}`;
  }
}

function portWords(ports: readonly number[]): string {
  return `${ports.length === 1 ? "port" : "ports"} ${ports.join(", ")}`;
}

function nameOf(source: Source, profile: string): string {
  return source === "tool" ? "its manifest entry" : `the profile ${profile}`;
}
