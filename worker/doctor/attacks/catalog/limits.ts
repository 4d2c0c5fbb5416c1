/**
 * Attacks on the limits of a sandbox: each takes up to twice a limit, in steps, and holds it for a
 * moment.
 */
import {
  type LimitFacts,
  type LimitName,
  type LimitReached,
  limitFacts,
} from "../../../protocol/resource-limits.ts";
import type { Enforcement } from "../../../sandbox/sandbox.ts";
import type { Attack, Observation, Verdict } from "../attack.ts";
import { readProgramAnswer } from "../../program.ts";

/** Each attack with the limit that it exceeds. The sandbox may also end for a stand-in. */
const attacked: readonly (readonly [string, LimitName, string])[] = [
  ["fork_bomb", "processes", "start more processes than there may be"],
  ["thread_bomb", "processes", "start more threads than there may be"],
  ["memory_of_one_process", "memoryBytes", "hold more memory, in one process"],
  ["memory_over_processes", "memoryBytes", "hold more memory, in several processes"],
  [
    "memory_without_first_thread",
    "memoryBytes",
    "hold more memory, in processes that go on without their first thread",
  ],
  [
    "memory_shared",
    "memoryBytes",
    "hold more memory, in mappings that are on no process's account",
  ],
  [
    "memory_cut_off",
    "memoryBytes",
    "hold more memory, in shared mappings of which all but a page was cut off",
  ],
  ["memory_in_sockets", "memoryBytes", "hold more memory, in sockets that nobody reads"],
  ["temporary_files", "tmpBytes", "put more into /tmp and /dev/shm"],
  ["disk_in_files", "diskBytes", "put more on the disk, in many files"],
  ["disk_unlinked", "diskBytes", "put more on the disk, in open files without a name"],
  ["disk_mapped", "diskBytes", "put more on the disk, in mapped files without a name"],
  ["disk_in_closed_directory", "diskBytes", "put more on the disk, where nobody may look"],
  ["disk_below_many_levels", "diskBytes", "put more on the disk, deeper than a path has room for"],
  ["disk_in_strange_names", "diskBytes", "put more on the disk, under names that are no text"],
  [
    "disk_behind_empty_directories",
    "diskBytes",
    "put more on the disk, behind many empty directories",
  ],
  [
    "disk_on_its_way",
    "diskBytes",
    "put more on the disk, in files that are on their way over a socket",
  ],
  [
    "disk_ahead_of_files",
    "diskBytes",
    "put more on the disk, in room that is kept for empty files",
  ],
  ["many_files_on_disk", "files", "make more files, directories, pipes and links on the disk"],
  ["many_files_in_memory", "files", "make more files on tmpfs"],
  ["cpu_over_processes", "cpuSeconds", "take more processor time, in several processes"],
  [
    "cpu_in_short_lives",
    "cpuSeconds",
    "take more processor time, in processes that are charged to nobody",
  ],
  ["large_file", "fileSizeBytes", "make a larger file"],
  ["open_many_files", "openFiles", "have more files open"],
  ["status_flood", "statusBytes", "write more statuses"],
];

/** Limits that end a sandbox instead of another: files that cannot be counted are too many. */
const standIns: Partial<Record<LimitName, LimitName>> = { diskBytes: "files" };

const fast: ReadonlySet<string> = new Set([
  "fork_bomb",
  "memory_over_processes",
  "disk_in_files",
  "disk_unlinked",
  "many_files_in_memory",
]);

/** Attacks that sampling misses, and whether a control group counts them. */
const unseen: Readonly<Record<string, { readonly why: string; readonly groupSees: boolean }>> = {
  memory_cut_off: {
    why: "only privileged workers see how large shared memory is that is mapped in part",
    groupSees: true,
  },
  memory_in_sockets: { why: "nobody sees what is in buffers of the kernel", groupSees: true },
  cpu_in_short_lives: { why: "nobody sees processes that end between two looks", groupSees: true },
  disk_mapped: {
    why: "only privileged workers see how large a file is that has no name and is mapped in part",
    groupSees: false,
  },
  disk_on_its_way: {
    why: "nobody sees files that are on their way over a socket",
    groupSees: false,
  },
};

/** Memory is kept by the kernel only where a control group counts memory and processor time. */
function notPromised(id: string, { memoryBytes }: Enforcement): string | undefined {
  const gap = unseen[id];
  return gap === undefined || (gap.groupSees && memoryBytes === "kernel") ? undefined : gap.why;
}

/** The attacks. */
export const limitsAttacks: readonly Attack[] = attacked.map(([id, limit, title]) => ({
  id,
  group: "limits",
  title,
  isFast: fast.has(id),
  notPromised: (_profile, _unenforced, enforcement) => notPromised(id, enforcement),
  judge: (observation) => judge(observation, limit),
  ...(id === "status_flood" && { baseline: "naive-worker" }),
}));

/** Blocked when the kernel refused more, or the call ended for the limit. */
function judge({ outcome, target }: Observation, limit: LimitName): Verdict {
  if (outcome.kind === "success") {
    const answer = readProgramAnswer(outcome.toolResult);
    return answer === undefined
      ? { blocked: false, evidence: "it ended with an answer that is not its own" }
      : { blocked: !answer.reached, evidence: answer.evidence };
  }
  if (outcome.kind !== "error")
    return { blocked: false, evidence: `the call ended as ${outcome.kind}` };
  const { error } = outcome;
  const ended = error.limit;
  if (ended === undefined || (ended.limit !== limit && ended.limit !== standIns[limit]))
    return { blocked: false, evidence: `no word of the limit: ${error.code}: ${error.message}` };
  return { blocked: true, evidence: endedFor(ended, target.limits[ended.limit]) };
}

/** Peak and limit, in the words of the attack programs. */
function endedFor({ limit, peak }: LimitReached, bound: number): string {
  const { word, unit }: LimitFacts = limitFacts[limit];
  const ofUnit = unit === "count" ? "" : ` ${unit}`;
  return peak === undefined
    ? `ended for ${word}: bound ${grouped(bound)}${ofUnit}`
    : `ended for ${word}: ${grouped(peak)}${ofUnit} seen, bound ${grouped(bound)}`;
}

function grouped(amount: number): string {
  return Math.round(amount).toLocaleString("en-US");
}
