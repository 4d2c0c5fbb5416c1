/**
 * How Solace matches topics with subscriptions; the DevBroker has rules of its own.
 */

/** A subscription, taken apart. */
export interface Subscription {
  /** As the client spelled it. */
  readonly text: string;
  readonly pattern: string;
  /** Of subscriptions in the same group with the same pattern, one gets each message. */
  readonly group: string | undefined;
}

const noExport = "#noexport/";
const share = "#share/";

/** Takes `#noexport/…` and `#share/GROUP/…` apart; anything else is the pattern itself. */
export function parseSubscription(text: string): Subscription {
  const rest = text.startsWith(noExport) ? text.slice(noExport.length) : text;
  const end = rest.indexOf("/", share.length);
  return rest.startsWith(share) && end !== -1
    ? { text, pattern: rest.slice(end + 1), group: rest.slice(share.length, end) }
    : { text, pattern: rest, group: undefined };
}

/**
 * Whether a pattern matches a topic. `*` at the end of a level stands for the rest of the level,
 * and alone for any level that is not empty; `>` as the last level stands for one or more levels. A
 * wildcard as the first level matches no topic that begins with `#`: these are the broker's own.
 */
export function topicMatches(pattern: string, topic: string): boolean {
  const wanted = pattern.split("/");
  const levels = topic.split("/");
  if (topic.startsWith("#") && /^(\*|>)$/.test(wanted[0] ?? "")) return false;
  const isOpen = wanted.at(-1) === ">";
  if (isOpen) wanted.pop();
  if (isOpen ? levels.length <= wanted.length : levels.length !== wanted.length) return false;
  return wanted.every((level, index) => levelMatches(level, levels[index] ?? ""));
}

function levelMatches(wanted: string, level: string): boolean {
  if (wanted === "*") return level !== "";
  return wanted.endsWith("*") ? level.startsWith(wanted.slice(0, -1)) : wanted === level;
}
