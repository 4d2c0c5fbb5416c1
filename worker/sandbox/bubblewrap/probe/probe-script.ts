/**
 * The probe script of trial sandboxes, and its observation from inside and outside.
 */
import { readFile, readlink } from "node:fs/promises";
import type { Limits } from "../../../protocol/resource-limits.ts";
import { ProcessTree } from "../../accounting/process-tree.ts";
import { TmpfsUsage } from "../../accounting/tmpfs-usage.ts";
import type { Network } from "../../../protocol/network-rules.ts";
import type { Profile } from "../../profile.ts";
import { type RlimitName, resourceOf, rlimitNames } from "../../rlimits.ts";
import { workDirInside } from "../../sandbox.ts";
import type { OpenTrial } from "./trial.ts";

const KiB = 1024;

/** Limits of a trial, tight enough to be reached in milliseconds. */
export const tightLimits = {
  processes: 8,
  openFiles: 64,
  fileSizeBytes: 256 * KiB,
  tmpBytes: 64 * KiB,
} as const satisfies Partial<Limits>;
/** Largest number of processes that a trial starts without a limit. */
const maxProcesses = 2 * tightLimits.processes;
/** Lifetime of an abandoned trial in seconds. */
const waitSeconds = 60;
/** Private file systems, by their names in the script's answers. */
const privateDirectories = { tmp: "/tmp", shm: "/dev/shm" } as const;

/**
 * The script needs only coreutils and util-linux, as sandboxes do. It starts processes by `setsid`,
 * which forks, so that the limit never refuses the shell itself.
 */
const script = `
report() { printf '%s: %s\\n' "$1" "$2"; }
work=$1
report nested "$(unshare --user true 2>&1 && echo made)"
report tmp "$(head -c ${2 * tightLimits.tmpBytes} /dev/zero 2>&1 > ${privateDirectories.tmp}/fill)"
report shm "$(head -c ${2 * tightLimits.tmpBytes} /dev/zero 2>&1 > ${privateDirectories.shm}/fill)"
head -c ${2 * tightLimits.fileSizeBytes} /dev/zero > "$work" 2> /dev/null
report file-size $?
prlimit --noheadings --raw --output RESOURCE,SOFT,HARD | while read -r name soft hard; do
  report "limit-$name" "$soft $hard"
done
set -- /proc/*
if [ -e "$1" ]; then
  report proc shown
  while read -r name value; do
    case "$name" in NSpid:) report process-ids "$value" ;; esac
  done < /proc/self/status
else
  report proc empty
fi
started=0
while [ "$started" -lt ${maxProcesses} ] && setsid --fork sleep ${waitSeconds} > /dev/null 2>&1; do
  started=$((started + 1))
done
report started "$started"
echo ready
exec sleep ${waitSeconds}
`;

/** The profile of a trial: a tool's with tight limits. */
export function trialProfile(profile: Profile): Profile {
  return { ...profile, limits: { ...profile.limits, ...tightLimits } };
}

/** The command of a trial; `name` is its file in the work directory. */
export function trialScript(name: string): readonly string[] {
  return ["/bin/sh", "-c", script, "sh", `${workDirInside}/${name}`];
}

/** The observation of one trial. */
export interface TrialObservation {
  readonly profile: string;
  /** Program of its first process: bubblewrap, even behind a script; undefined when hidden. */
  readonly program: string | undefined;
  readonly network: Network;
  /** Number of its own network namespace, or undefined. */
  readonly networkNamespace: number | undefined;
  /** The refusal of a user namespace inside the sandbox, or `made`. */
  readonly nested: string;
  /** `own` where /proc knows a process by one number only, that of the innermost namespace. */
  readonly proc: "own" | "empty" | "other";
  /** Number of system-call filters in force; undefined where the kernel hides it. */
  readonly filters: number | undefined;
  /** Rlimits that have another value, or bound nothing. */
  readonly wrongLimits: readonly RlimitName[];
  /** Started processes until a refusal; undefined without one. */
  readonly startedProcesses: number | undefined;
  /** Private file systems without an end at their size. */
  readonly endless: readonly string[];
  /** What the resource monitor sees of the sandbox. */
  readonly seesProcesses: boolean;
  readonly seesFiles: boolean;
}

/** Observes a ready trial. */
export async function observe(
  trial: OpenTrial,
  profile: Profile,
  expected: Limits,
  workDir: string,
): Promise<TrialObservation> {
  const { answers, firstPid } = trial;
  const started = Number(answers.get("started"));
  const place = {
    directories: Object.values(privateDirectories),
    workDirInside,
    workDir,
  };
  const processes = new ProcessTree(firstPid).sample(true);
  return {
    profile: profile.name,
    program: await readlink(`/proc/${firstPid}/exe`).catch(() => undefined),
    network: profile.network,
    networkNamespace: trial.networkNamespace,
    nested: answers.get("nested") ?? "made",
    proc: procOf(answers),
    filters: filtersIn(await readStatus(firstPid)),
    wrongLimits: wrongLimits(answers, expected),
    startedProcesses: started < maxProcesses ? started : undefined,
    endless: Object.entries(privateDirectories).flatMap(([word, directory]) =>
      answers.get(word)?.includes("No space left") ? [] : [directory],
    ),
    seesProcesses:
      processes.length > tightLimits.processes / 2 &&
      processes.some(({ privateBytes }) => privateBytes > 0),
    seesFiles: (new TmpfsUsage(firstPid, place).read()?.bytes ?? 0) > 0,
  };
}

function procOf(answers: OpenTrial["answers"]): TrialObservation["proc"] {
  if (answers.get("proc") === "empty") return "empty";
  return /^\d+$/.test(answers.get("process-ids") ?? "") ? "own" : "other";
}

function wrongLimits(
  answers: OpenTrial["answers"],
  expected: Limits,
): TrialObservation["wrongLimits"] {
  return rlimitNames.filter((name) => {
    const value = String(expected[name]);
    const [soft, hard] = (answers.get(`limit-${resourceOf(name)}`) ?? "").split(" ");
    const isSet = soft === value && (hard === value || name === "cpuSeconds");
    return !isSet || (name === "fileSizeBytes" && answers.get("file-size") === "0");
  });
}

/** Text of /proc/PID/status, empty when it cannot be read. */
export function readStatus(pid: number | "self"): Promise<string> {
  return readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
}

/** Number of system-call filters in a process's status; see proc_pid_status(5). */
export function filtersIn(status: string): number | undefined {
  const count = /^Seccomp_filters:\s*(\d+)$/m.exec(status)?.[1];
  return count === undefined ? undefined : Number(count);
}
