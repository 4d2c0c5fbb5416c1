/**
 * Attacks on later calls: traces and processes that a call leaves.
 */
import type { Attack, Observation, Verdict } from "../attack.ts";
import { leftProcesses } from "../left-processes.ts";
import { readProgramAnswer } from "../../program.ts";
import { unlessFiltered } from "./no-baseline.ts";

/** An answer after more milliseconds waited for a left process, which stays thirty seconds. */
const promptlyMs = 25_000;
/** Milliseconds until the end of a call that ignores its time limit of one second. */
const stoppedMs = 12_000;
/** Status of a program that runs long after its time limit and the grace. */
const wentOnStatus = "str-went-on";

export const tracesAttacks: readonly Attack[] = [
  {
    id: "leave_files",
    group: "traces",
    title: "leave a file for a later call",
    isFast: true,
    rounds: 2,
  },
  {
    id: "leave_keys",
    group: "traces",
    title: "leave a key in the kernel's keyrings",
    isFast: false,
    rounds: 2,
    noBaseline: unlessFiltered,
  },
  {
    id: "leave_ipc_objects",
    group: "traces",
    title: "leave shared memory, queues and semaphores",
    isFast: true,
    rounds: 2,
  },
  {
    id: "leave_processes",
    group: "traces",
    title: "leave processes behind, detached or with the output open",
    isFast: true,
    rounds: 2,
    judge: judgeLeftProcesses,
  },
  {
    id: "ignore_end",
    group: "traces",
    title: "go on after the time limit",
    isFast: false,
    manifest: { timeout_seconds: 1 },
    judge: judgeTimeLimit,
  },
];

function judgeLeftProcesses({ outcome, durationMs, target }: Observation): Verdict {
  const left = leftProcesses(target.token);
  const answer = outcome.kind === "success" ? readProgramAnswer(outcome.toolResult) : undefined;
  const blocked = answer?.reached === false && durationMs < promptlyMs && left.length === 0;
  const evidence = answer?.evidence ?? `the call ended as ${outcome.kind}`;
  return { blocked, evidence: `${evidence}; answered after ${durationMs} ms, ${described(left)}` };
}

function judgeTimeLimit({ outcome, statuses, durationMs, target }: Observation): Verdict {
  const left = leftProcesses(target.token);
  const wentOn = statuses.includes(wentOnStatus);
  const isOver = outcome.kind === "timeout" && durationMs < stoppedMs;
  const ending = `the call ended as ${outcome.kind} after ${durationMs} ms`;
  const evidence = `${ending}, ${wentOn ? "its process went on to its end" : "its process was ended"}`;
  return {
    blocked: isOver && !wentOn && left.length === 0,
    evidence: `${evidence}, ${described(left)}`,
  };
}

function described(left: readonly number[]): string {
  return left.length === 0 ? "no process left" : `processes ${left.join(", ")} left`;
}
