/**
 * Attacks on the worker, by files that it reads and removes after a call.
 */
import type { ErrorCode } from "../../../protocol/errors.ts";
import { isDeceptive } from "../../../support/text/deceptive.ts";
import { readProgramAnswer } from "../../program.ts";
import type { Attack, Observation, Verdict } from "../attack.ts";

/** Longest acceptable stall of the event loop on a busy machine, in milliseconds. */
const maxStallMs = 1_000;
/** Longest acceptable time of an answer, in milliseconds, on a busy machine. */
const maxDurationMs = 30_000;
/** Characters of a published status: a line of the pipe is no longer. */
const maxStatusLength = 4_096;

/** End of a call. */
type CallEnd = "success" | ErrorCode;

/** Each attack with the ends that its call may have. */
const attacked: readonly (readonly [string, readonly CallEnd[], string])[] = [
  ["status_endless_line", ["success"], "write a status without an end"],
  ["status_never_opened", ["success"], "never open the status pipe"],
  ["status_pipe_replaced", ["success"], "put a link in place of the status pipe"],
  [
    "status_forged",
    ["success"],
    "speak for other calls, steer terminals and forge lines by statuses",
  ],
  ["result_link", ["INTERNAL_ERROR"], "leave a link as the result"],
  [
    "result_hard_link",
    ["success", "INTERNAL_ERROR"],
    "leave a second name of a file as the result",
  ],
  ["result_pipe", ["INTERNAL_ERROR"], "leave a named pipe as the result"],
  ["result_directory", ["INTERNAL_ERROR"], "leave a directory as the result"],
  ["result_oversized", ["RESOURCE_EXHAUSTED"], "leave a result that is larger than a message"],
  ["result_many_values", ["INTERNAL_ERROR"], "leave a result of millions of values"],
  ["result_deep", ["INTERNAL_ERROR"], "leave a result of a million values in each other"],
  [
    "result_strange_values",
    ["success"],
    "leave numbers that are none and names that objects inherit",
  ],
  ["result_torn", ["INTERNAL_ERROR"], "leave half a result that is no text"],
  ["result_empty", ["INTERNAL_ERROR"], "leave an empty result"],
  ["output_link", ["success"], "leave links as outputs"],
  ["output_directory_link", ["success"], "put a link in place of the directory of outputs"],
  ["output_pipe_and_socket", ["success"], "leave a named pipe and a socket as outputs"],
  ["output_hard_link", ["success"], "leave a second name of a file as an output"],
  [
    "output_names",
    ["ARTIFACT_ERROR"],
    "leave outputs under names that do harm where they are shown or used",
  ],
  ["output_sparse", ["ARTIFACT_ERROR"], "leave outputs that are larger than the disk"],
  [
    "output_swapped",
    ["success", "INTERNAL_ERROR"],
    "exchange result and output for links after the end",
  ],
  ["output_growing", ["success"], "make an output grow while it is read"],
  ["tree_deep", ["success", "EXECUTION_ERROR"], "leave a tree deeper than a stack"],
  [
    "tree_closed",
    ["INTERNAL_ERROR", "ARTIFACT_ERROR", "success"],
    "leave a tree that nobody may look into",
  ],
  ["stdout_flood", ["success"], "print without an end"],
  ["result_printed", ["success"], "forge its result by what it prints, and by an early one"],
];

const fast: ReadonlySet<string> = new Set([
  "status_forged",
  "result_link",
  "result_pipe",
  "result_many_values",
  "output_link",
  "output_directory_link",
  "output_names",
  "output_swapped",
  "tree_closed",
]);

/** The one that is a program. */
const program: Attack = {
  id: "program_printed",
  group: "worker",
  title: "forge the value of a program by what it prints, and by an early result",
  isFast: true,
  isProgram: true,
  baseline: "naive-worker",
  judge: judgeValue,
};

/** The attacks. */
export const workerAttacks: readonly Attack[] = [
  ...attacked.map(([id, allowed, title]): Attack => ({
    id,
    group: "worker",
    title,
    isFast: fast.has(id),
    baseline: "naive-worker",
    judge: (observation) => judge(observation, allowed),
  })),
  program,
];

/** Blocked when the value is what the program returned. Undefined where it is no answer at all. */
function judgeValue({ outcome }: Observation): Verdict | undefined {
  if (outcome.kind !== "success") return undefined;
  const { value } = outcome.toolResult;
  const answer = readProgramAnswer(value);
  return answer && { blocked: !answer.reached, evidence: `its value: ${answer.evidence}` };
}

/** Blocked when the worker answered by the right code, in time, and published no secret. */
function judge(observation: Observation, allowed: readonly CallEnd[]): Verdict {
  const { longestStallMs, durationMs } = observation;
  const callEnd = callEndOf(observation);
  const faults = [
    ...(allowed.some((end) => end === callEnd) ? [] : [`the call ended as ${callEnd}`]),
    ...unclean(observation),
    ...(longestStallMs > maxStallMs ? ["the worker stood still"] : []),
    ...(durationMs > maxDurationMs ? ["the answer was late"] : []),
    ...("polluted" in {} ? ["objects have inherited a member of the result"] : []),
  ];
  const seen = `${callEnd} after ${durationMs} ms, at most ${Math.round(longestStallMs)} ms held up`;
  return { blocked: faults.length === 0, evidence: [...faults, seen].join("; ") };
}

function callEndOf({ outcome }: Observation): string {
  return outcome.kind === "error" ? outcome.error.code : outcome.kind;
}

/** Faults of the messages to publish. */
function unclean({ outcome, statuses, artifacts, target }: Observation): readonly string[] {
  const answer =
    outcome.kind === "error" ? outcome.error.message : JSON.stringify({ ...outcome, error: null });
  const saved = [...artifacts].map(([name, bytes]) => `${name}\n${Buffer.from(bytes).toString()}`);
  const published = [answer, ...statuses, ...saved];
  const faults: string[] = [];
  if (published.some((text) => text.includes(target.token)))
    faults.push(`published ${target.token}`);
  const texts = [...statuses, ...artifacts.keys()];
  if (texts.some((text) => isDeceptive(text) || !text.isWellFormed()))
    faults.push("published characters that steer terminals");
  if (statuses.some((text) => text.length > maxStatusLength))
    faults.push("published a status that is too long");
  return faults;
}
