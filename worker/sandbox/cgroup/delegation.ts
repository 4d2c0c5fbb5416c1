/**
 * Prepares a group of version 2 for groups below it.
 *
 * A group that passes controllers on must have no process of its own (cgroups(7), "no internal
 * processes" rule), and the worker was started in it. So the worker first moves to a group below.
 *
 *   before   G: worker            after   G: passes memory and pids on
 *                                         ├─ str-worker: worker, and what it starts for itself
 *                                         └─ str-sandbox-…: one for each sandbox
 */
import { join } from "node:path";
import { readStat } from "../proc/stat.ts";
import { type CgroupFiles, isErrno } from "./files.ts";
import { CgroupRefusal, refusalOf } from "./refusal.ts";

/** The group that the worker moves to. */
const workerGroup = "str-worker";
/** Rounds in which all processes of a group are moved: they may fork meanwhile. */
const maxMoveRounds = 16;
/** Generations between a process and this one, above which it counts as a stranger. */
const maxGenerations = 64;

/**
 * Makes `directory`, the group of this process, pass controllers on, and moves this process and its
 * descendants below if they are alone. Disposing undoes it, unless other groups need the
 * controllers. Throws CgroupRefusal, and then everything is as before.
 */
export function passOn(
  files: CgroupFiles,
  directory: string,
  controllers: readonly string[],
): Disposable {
  const control = join(directory, "cgroup.subtree_control");
  const present = (files.read(control) ?? "").trim().split(" ");
  const missing = controllers.filter((controller) => !present.includes(controller));
  using undo = new DisposableStack();
  if (missing.length === 0) return undo.move();
  const write = (sign: "+" | "-"): void =>
    files.write(control, missing.map((controller) => sign + controller).join(" "));
  try {
    write("+");
  } catch (error) {
    if (!isErrno(error, "EBUSY")) throw refusalOf(error, directory);
    undo.use(stepAside(files, directory));
    try {
      write("+");
    } catch (again) {
      throw refusalOf(again, directory);
    }
  }
  undo.defer(() => {
    const others = files.groupsIn(directory).filter((name) => name !== workerGroup);
    if (others.length === 0) write("-");
  });
  return undo.move();
}

/** Moves all processes of the group below; disposing moves them back. Throws CgroupRefusal. */
function stepAside(files: CgroupFiles, directory: string): Disposable {
  const strangers = files.processesIn(directory).filter((pid) => !descends(pid));
  if (strangers.length > 0) {
    const message = `${directory} holds ${strangers.length} other processes`;
    throw new CgroupRefusal("not-alone", message);
  }
  const below = join(directory, workerGroup);
  using undo = new DisposableStack();
  try {
    try {
      files.make(below);
    } catch (error) {
      // A killed worker leaves its own.
      if (!isErrno(error, "EEXIST")) throw error;
    }
    undo.defer(() => {
      moveAll(files, below, directory);
      files.remove(below);
    });
    moveAll(files, directory, below);
  } catch (error) {
    throw refusalOf(error, directory);
  }
  return undo.move();
}

function moveAll(files: CgroupFiles, from: string, to: string): void {
  for (let round = 0; round < maxMoveRounds; round++) {
    const pids = files.processesIn(from);
    if (pids.length === 0) return;
    for (const pid of pids) {
      try {
        files.write(join(to, "cgroup.procs"), String(pid));
      } catch (error) {
        // It ended meanwhile.
        if (!isErrno(error, "ESRCH")) throw error;
      }
    }
  }
  throw new Error(`${from} does not get empty`);
}

/** Whether a process is this one or a descendant. */
function descends(pid: number): boolean {
  let ancestor: number | undefined = pid;
  for (let generation = 0; generation < maxGenerations; generation++) {
    if (ancestor === process.pid) return true;
    if (ancestor === undefined || ancestor <= 1) return false;
    ancestor = readStat(`/proc/${ancestor}`)?.parentPid;
  }
  return false;
}
