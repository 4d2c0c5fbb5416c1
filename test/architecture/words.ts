/**
 * Invented words that the field's own replaced, as data: code and comments use those on the right.
 * Each invented word is in one of the three tables.
 */

/** By whole words, in any case; identifiers are taken apart at their capitals. */
export const retiredWords: Readonly<Record<string, string>> = {
  allot: "allocate",
  arrivals: "demand",
  audience: "subscriptions",
  begun: "started",
  circumstances: "host settings",
  crowded: "exhausted",
  dial: "connect",
  dialled: "connected",
  dialler: "connector",
  fading: "decay",
  farewell: "close handshake",
  goodbye: "close handshake",
  house: "package",
  hurry: "shutdownNow",
  impediment: "not-ready reason",
  impediments: "not-ready reasons",
  journal: "record",
  knock: "probe",
  knocks: "probes",
  parting: "release",
  seam: "contract",
  shelf: "pool",
  shelves: "pools",
  spine: "invoker",
  surplus: "excess",
  telling: "errors",
};

/** By whole identifiers, outside of comments. */
export const retiredNames: Readonly<Record<string, string>> = {
  AheadKind: "StartMode",
  Arrivals: "Demand",
  CarriedCalls: "UnsettledCalls",
  CodeLook: "Fingerprint",
  Claim: "Request",
  Consumers: "QueueConsumer",
  ControlRun: "BaselineRun",
  Endings: "Disposal",
  FloodGate: "ReadThrottle",
  GivenUp: "Cancelled",
  HandBack: "Requeue",
  HeardMessages: "SubscriptionBuffer",
  HeldFiles: "OpenFiles",
  PrivateMemory: "TmpfsUsage",
  Intake: "DeliveryBuffer",
  Liveness: "LivenessSocket",
  Neighbour: "Victim",
  Places: "UnsettledCalls",
  Refills: "PoolScheduler",
  Restoring: "Reconnecting",
  Serving: "Subscriptions",
  Slots: "Semaphore",
  Stage: "Arena",
  Supply: "SandboxFactory",
  Totals: "SandboxUsage",
  Watched: "UsageSampler",
  Taking: "QueueConsumer",
  Tap: "QueueConsumer",
  Told: "CallOutcome",
  Turns: "RoundRobin",
  callKey: "deduplicationKey",
  givenBack: "requeued",
  handBack: "requeue",
  markOptions: "ownerTagOptions",
  mayRunAgain: "idempotent",
  needsNeighbour: "needsVictim",
  noControl: "noBaseline",
  plants: "canaries",
  sandboxMark: "ownerTag",
  showAlive: "openLivenessSocket",
  toldChecks: "reportedChecks",
};

/**
 * Invented words that are ordinary ones too, and not looked for: review decides. With the field's
 * word for the invented meaning, and why the word stays.
 */
export const ordinaryWords: Readonly<Record<string, readonly [field: string, reason: string]>> = {
  ahead: ["idle", "work is also done ahead of a call"],
  alive: ["liveness", "a process is alive; workers find each other's sockets by that file name"],
  control: ["baseline", "control groups, characters and flow; a member of the doctor's JSON"],
  hand: ["prefetched", "by hand, on the other hand"],
  held: ["blocked", "locks and limits are held; a verdict of the doctor"],
  inside: ["probe script", "a preposition, and the view from a sandbox"],
  kind: ["startMode", "the tag of a union, and the variants of anything"],
  leave: ["unsubscribe", "processes leave files behind"],
  leaving: ["exit", "files are left for the worker to read"],
  line: ["queue", "lines of text and of the wire"],
  look: ["probe, sample", "a person looks at logs"],
  mark: ["owner tag", "marks in the store keep a call for the workers of a group"],
  neighbour: ["victim", "files and ranges have neighbours"],
  place: ["what the field says there", "a position, and in place of"],
  private: ["tmpfs", "what others cannot read, and a keyword"],
  reach: ["path permissions", "attacks reach a target; bytes reach a bound"],
  remedies: ["hints", "the member remedy is in the doctor's JSON and the health report"],
  returned: ["results", "functions return values"],
  room: ["prefetch limit, headroom", "a disk has room"],
  said: ["observation", "programs print, people say"],
  say: ["log", "programs print, people say"],
  serve: ["subscribe", "workers serve tools, and servers requests"],
  stage: ["arena", "inputs are staged before a call"],
  start: ["startMode", "the begin of anything; a field of the manifest"],
  tell: ["report", "to tell one from another"],
  token: ["canary", "the value of a canary, credentials, and what a parser reads"],
  told: ["reported", "callbacks are told what happened"],
  took: ["probe", "the past of to take"],
  turn: ["permit", "a turn of the event loop"],
  waiting: ["idle", "callers wait for a permit"],
  warm: ["idle", "the field warm of the manifest, and the starts that operators see"],
  way: ["startMode", "attacks try several ways"],
  within: ["withTimeout", "a preposition of time and place"],
};

/** Files whose subject has a retired word for a name. */
const subjects: Readonly<Record<string, readonly string[]>> = {
  // The socket of systemd's journal.
  "attacks/reach_socket_file.py": ["journal"],
  // A field of OAuth's requests for tokens.
  "harness/fakes/gcs/tokens.ts": ["audience"],
};

const anyRetired = new RegExp(Object.keys({ ...retiredWords, ...retiredNames }).join("|"), "i");
const comment = /^\s*(?:\/?\*|\/\/|#)/;

/** The retired words of one line, as `word: use other`. */
export function retiredWordsIn(line: string, path?: string): readonly string[] {
  if (!anyRetired.test(line)) return [];
  const names = line.match(/[A-Za-z_]\w*/g) ?? [];
  const parts = names.flatMap((name) => name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[ _]/));
  const allowed = path === undefined ? [] : (subjects[path] ?? []);
  const words = parts.map((part) => part.toLowerCase()).filter((word) => !allowed.includes(word));
  return [...(comment.test(line) ? [] : found(names, retiredNames)), ...found(words, retiredWords)];
}

function found(words: readonly string[], retired: Readonly<Record<string, string>>) {
  return [...new Set(words)]
    .filter((word) => Object.hasOwn(retired, word))
    .map((word) => `${word}: use ${retired[word]}`);
}
