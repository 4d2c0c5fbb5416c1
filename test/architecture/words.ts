/**
 * Invented words that the field's own replaced, as data: code and comments use those on the right.
 */

/** By whole words, in any case; identifiers are taken apart at their capitals. */
export const retiredWords: Readonly<Record<string, string>> = {
  allot: "allocate",
  begun: "started",
  dialler: "connector",
  fading: "decay",
  impediment: "not-ready reason",
  impediments: "not-ready reasons",
  journal: "record",
  shelf: "pool",
  shelves: "pools",
  spine: "invoker",
};

/** By whole identifiers. */
export const retiredNames: Readonly<Record<string, string>> = {
  Arrivals: "Demand",
  CarriedCalls: "UnsettledCalls",
  FloodGate: "ReadThrottle",
  GivenUp: "Cancelled",
  HeardMessages: "SubscriptionBuffer",
  HeldFiles: "OpenFiles",
  PrivateMemory: "TmpfsUsage",
  Refills: "PoolScheduler",
  Slots: "Semaphore",
  Supply: "SandboxFactory",
  Totals: "SandboxUsage",
  Watched: "UsageSampler",
  callKey: "deduplicationKey",
  givenBack: "requeued",
  mayRunAgain: "idempotent",
};

/** The retired words of a text, as `word: use other`. */
export function retiredWordsIn(text: string): readonly string[] {
  const names = text.match(/[A-Za-z_]\w*/g) ?? [];
  const parts = names.flatMap((name) => name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[ _]/));
  const words = parts.map((part) => part.toLowerCase());
  return [...found(names, retiredNames), ...found(words, retiredWords)];
}

function found(words: readonly string[], retired: Readonly<Record<string, string>>) {
  return [...new Set(words)]
    .filter((word) => Object.hasOwn(retired, word))
    .map((word) => `${word}: use ${retired[word]}`);
}
