/**
 * Builds, parses, checks and matches the topics of the tool protocol (design document, section 5).
 */

/** Longest topic that every broker accepts, in bytes of UTF-8 (Solace's limit). */
export const maxTopicBytes = 250;

/** Longest namespace, so that every invoke topic fits into `maxTopicBytes`. */
export const maxNamespaceBytes = 110;

/** Longest tool name. */
export const maxToolNameBytes = 100;

/**
 * Undefined for a valid namespace: letters, digits and `. _ / -`, no empty level, no `..`. One
 * trailing slash is valid; topics omit it.
 */
export function namespaceProblem(namespace: string): string | undefined {
  if (!/^[A-Za-z0-9._/-]*$/.test(namespace)) return "has characters other than A-Z a-z 0-9 . _ / -";
  return levelsProblem(namespace.replace(/\/$/, ""), maxNamespaceBytes);
}

/** Undefined for a valid tool name, which is the last level of a topic. */
export function toolNameProblem(name: string): string | undefined {
  if (!/^[A-Za-z0-9._-]*$/.test(name)) return "has characters other than A-Z a-z 0-9 . _ -";
  return levelsProblem(name, maxToolNameBytes);
}

function levelsProblem(text: string, maxBytes: number): string | undefined {
  if (text === "") return "is empty";
  if (text.includes("..")) return 'contains ".."';
  if (text.split("/").includes("")) return "has an empty level";
  if (text.length > maxBytes) return `is longer than ${maxBytes} bytes`;
  return undefined;
}

/** Topic of the calls of a tool. Expects a checked namespace and name. */
export function invokeTopic(namespace: string, toolName: string): string {
  return `${invokeBase(namespace)}${toolName}`;
}

/** The tool name of an invoke topic of this namespace; undefined for other topics. */
export function parseInvokeTopic(namespace: string, topic: string): string | undefined {
  return toolAfter(invokeBase(namespace), topic);
}

function toolAfter(base: string, topic: string): string | undefined {
  if (!topic.startsWith(base)) return undefined;
  const toolName = topic.slice(base.length);
  return toolNameProblem(toolName) === undefined ? toolName : undefined;
}

/** Topic of an agent's answer; the correlation id `>` gives the pattern of all its answers. */
export function responseTopic(namespace: string, agent: string, correlationId: string): string {
  return `${base(namespace)}/response/${agent}/${correlationId}`;
}

/** Topic of an agent's statuses; the correlation id `>` gives the pattern of all of them. */
export function statusTopic(namespace: string, agent: string, correlationId: string): string {
  return `${base(namespace)}/status/${agent}/${correlationId}`;
}

/**
 * Topics about the description of a tool: its broadcasts, which early agents also ask on; requests;
 * its removal; a failure to describe it. The tool `>` gives the pattern of all tools.
 */
export const discoveryKinds = ["init", "init_request", "removed", "failed_discovery"] as const;
export type DiscoveryKind = (typeof discoveryKinds)[number];

/** A topic of discovery. Expects a checked namespace and name. */
export function discoveryTopic(namespace: string, kind: DiscoveryKind, toolName: string): string {
  return `${base(namespace)}/${kind}/${toolName}`;
}

/** The tool of a discovery topic of this namespace and kind; undefined for other topics. */
export function parseDiscoveryTopic(
  namespace: string,
  kind: DiscoveryKind,
  topic: string,
): string | undefined {
  return toolAfter(discoveryTopic(namespace, kind, ""), topic);
}

/** Topic of the announcements of all worker groups. */
export function workersTopic(namespace: string): string {
  return `${base(namespace)}/worker`;
}

/** Topic of the cancel of a call; the correlation id `>` gives the pattern of all cancels. */
export function cancelTopic(namespace: string, correlationId: string): string {
  return `${cancelBase(namespace)}${correlationId}`;
}

/** The correlation id of a cancel topic of this namespace; undefined for other topics. */
export function parseCancelTopic(namespace: string, topic: string): string | undefined {
  const base = cancelBase(namespace);
  const correlationId = topic.slice(base.length);
  return topic.startsWith(base) && correlationId !== "" ? correlationId : undefined;
}

function cancelBase(namespace: string): string {
  return `${base(namespace)}/cancel/`;
}

function invokeBase(namespace: string): string {
  return `${base(namespace)}/invoke/`;
}

/** Peers strip every trailing slash, so `ed_test/` and `ed_test` share their topics. */
function base(namespace: string): string {
  return `${namespace.replace(/\/+$/, "")}/a2a/v1/sam_remote_tool`;
}

/**
 * Whether a reply topic is usable: no wildcards, which not all brokers refuse, no control
 * characters, at most `maxTopicBytes`.
 */
export function isPublishableTopic(topic: string): boolean {
  return (
    topic !== "" &&
    topic.isWellFormed() &&
    !/[*>\p{Cc}]/u.test(topic) &&
    Buffer.byteLength(topic) <= maxTopicBytes
  );
}

/**
 * Whether a subscription pattern matches a topic, as the DevBroker decides it.
 *
 * A level that is exactly `*` stands for one level that is not empty. A level that is exactly `>`
 * stands for one or more levels, also in the middle and also empty ones. Every other level is
 * literal, `b*` included. As the original matches with an anchored regular expression, one newline
 * at the end of the topic is overlooked and `>` stops at a newline.
 */
export function topicMatches(pattern: string, topic: string): boolean {
  const literalLength = pattern.search(/[*>]/);
  if (literalLength === -1) return topic === pattern || topic === `${pattern}\n`;
  // Most differ before the first of these.
  if (!topic.startsWith(pattern.slice(0, literalLength))) return false;
  const patternLevels = pattern.split("/");
  return (
    levelsMatch(patternLevels, topic.split("/")) ||
    (topic.endsWith("\n") && levelsMatch(patternLevels, topic.slice(0, -1).split("/")))
  );
}

/** Walks the pattern once with the set of reachable topic levels, without backtracking. */
function levelsMatch(pattern: readonly string[], topic: readonly string[]): boolean {
  let reachable: ReadonlySet<number> = new Set([0]);
  for (const wanted of pattern) {
    const next = new Set<number>();
    let spanning = false;
    topic.forEach((level, index) => {
      const starts = reachable.has(index);
      spanning = wanted === ">" && (spanning || starts) && !level.includes("\n");
      const isOneLevel = wanted === "*" ? level !== "" : wanted !== ">" && wanted === level;
      if (spanning || (starts && isOneLevel)) next.add(index + 1);
    });
    reachable = next;
  }
  return reachable.has(topic.length);
}
