/**
 * Makes a group of version 2 ready for groups below it.
 *
 * A group that passes controllers on must have no process of its own (cgroups(7), "no internal
 * processes" rule), and the worker was started in it, as by systemd's `Delegate=yes` and in
 * containers. So the worker goes to a group below first.
 *
 *   before   G: worker            after   G: passes memory and pids on
 *                                         ├─ str-worker: worker, and what it starts for itself
 *                                         └─ str-sandbox-…: one for each sandbox
 */
import { join } from "node:path";
import type { Clock } from "../../support/clock.ts";
import { type CgroupFiles, isErrno } from "./files.ts";
import { CgroupRefusal, refusalOf } from "./refusal.ts";
import { readStat } from "../proc/stat.ts";

/** The group that the worker goes to. */
const workerGroup = "str-worker";
/** Rounds in which all processes of a group are moved: they may have children meanwhile. */
const maxMoveRounds = 16;
/** Generations between a process and this one: more is taken for none. */
const maxGenerations = 64;

/** What is there whatever the group. */
export interface DelegationSurroundings {
  readonly files: CgroupFiles;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/**
 * What was changed of a group. Disposing undoes it, unless groups are left that it would take the
 * controllers from.
 */
export interface PassedOn extends Disposable {
  /** Milliseconds of the longest move of a process out of the way; 0 when none was moved. */
  readonly longestMoveMs: number;
}

/**
 * Has `directory`, the group of this process, pass controllers on, and moves this process and its
 * descendants out of the way if they are all that is in there. Throws CgroupRefusal, and then
 * everything is as before.
 */
export function passOn(
  surroundings: DelegationSurroundings,
  directory: string,
  controllers: readonly string[],
): PassedOn {
  const { files } = surroundings;
  const control = join(directory, "cgroup.subtree_control");
  const present = (files.read(control) ?? "").trim().split(" ");
  const missing = controllers.filter((controller) => !present.includes(controller));
  if (missing.length === 0) return { longestMoveMs: 0, [Symbol.dispose]: () => undefined };
  const write = (sign: "+" | "-"): void =>
    files.write(control, missing.map((controller) => sign + controller).join(" "));
  const takeBack = (): void => {
    const others = files.groupsIn(directory).filter((name) => name !== workerGroup);
    if (others.length === 0) write("-");
  };
  try {
    write("+");
    return { longestMoveMs: 0, [Symbol.dispose]: takeBack };
  } catch (error) {
    if (!isErrno(error, "EBUSY")) throw refusalOf(error, directory);
  }
  const stepped = stepAside(surroundings, directory);
  try {
    write("+");
  } catch (error) {
    stepped[Symbol.dispose]();
    throw refusalOf(error, directory);
  }
  return {
    longestMoveMs: stepped.longestMoveMs,
    [Symbol.dispose]: () => {
      takeBack();
      stepped[Symbol.dispose]();
    },
  };
}

/**
 * Moves all processes of the group to one below; disposing moves them back. Throws CgroupRefusal.
 */
function stepAside(surroundings: DelegationSurroundings, directory: string): PassedOn {
  const { files } = surroundings;
  const strangers = files.processesIn(directory).filter((pid) => !descends(pid));
  if (strangers.length > 0) {
    const message = `${directory} holds ${strangers.length} other processes`;
    throw new CgroupRefusal("not-alone", message);
  }
  const below = join(directory, workerGroup);
  const stepBack = (): void => {
    moveAll(surroundings, below, directory);
    files.remove(below);
  };
  try {
    files.make(below);
  } catch (error) {
    // A worker that was killed leaves its own.
    if (!isErrno(error, "EEXIST")) throw refusalOf(error, directory);
  }
  try {
    const longestMoveMs = moveAll(surroundings, directory, below);
    return { longestMoveMs, [Symbol.dispose]: stepBack };
  } catch (error) {
    stepBack();
    throw refusalOf(error, directory);
  }
}

/** Returns the milliseconds of the longest move. */
function moveAll({ files, clock }: DelegationSurroundings, from: string, to: string): number {
  let longestMs = 0;
  for (let round = 0; round < maxMoveRounds; round++) {
    const pids = files.processesIn(from);
    if (pids.length === 0) return longestMs;
    for (const pid of pids) {
      const startMs = clock.monotonicMs();
      try {
        files.write(join(to, "cgroup.procs"), String(pid));
      } catch (error) {
        // It ended meanwhile.
        if (!isErrno(error, "ESRCH")) throw error;
      }
      longestMs = Math.max(longestMs, clock.monotonicMs() - startMs);
    }
  }
  throw new Error(`${from} does not get empty`);
}

/** Whether a process is this one or comes from it. */
function descends(pid: number): boolean {
  let ancestor: number | undefined = pid;
  for (let generation = 0; generation < maxGenerations; generation++) {
    if (ancestor === process.pid) return true;
    if (ancestor === undefined || ancestor <= 1) return false;
    ancestor = readStat(`/proc/${ancestor}`)?.parentPid;
  }
  return false;
}
