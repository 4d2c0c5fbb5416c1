/**
 * Opens one version of control groups: where sandboxes' groups are to be, and a trial of each
 * place.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { CgroupControl } from "./cgroup.ts";
import { passOn } from "./delegation.ts";
import { type CgroupDialect, cgroupV1, cgroupV2 } from "./dialect.ts";
import { ownGroupV1, ownGroupV2 } from "./discovery.ts";
import { type CgroupMakings, CgroupOfSandbox, type CgroupParent } from "./group.ts";
import { isNoticeable } from "./join.ts";
import { CgroupRefusal, refusalOf } from "./refusal.ts";
import { SandboxError } from "../sandbox.ts";

/** Everything that control groups can keep. */
export const cgroupControls: readonly CgroupControl[] = ["memory", "processes", "cpu"];

/** Any limits that a shell fits in. */
const trialLimits = { memoryBytes: 64 * 1024 * 1024, processes: 8 };

/** Times that joining is timed again when it seemed long. */
const maxRetimings = 2;
/** Milliseconds before it is: right after a move the next one is quick whatever the host. */
const retimingPauseMs = 50;

/** What is there whatever the version. */
export type CgroupSurroundings = Omit<CgroupMakings, "dialect" | "parents"> & {
  /** Whether joining is timed again when it seemed long, which takes a moment. */
  readonly timesJoin: boolean;
};

/** What can be used of a version, and what not. Nothing can where `makings` is undefined. */
export interface OpenedVersion {
  readonly makings: CgroupMakings | undefined;
  readonly refusals: readonly CgroupRefusal[];
  /** Milliseconds that a process took to join a group of it; 0 when none did. */
  readonly joinMs: number;
  /** Gives back what was changed of the worker's own group; due when no sandbox's group is left. */
  readonly own: Disposable;
}

/** Version 2: one hierarchy. What the worker's group may not pass on is left out. */
export async function openV2(
  surroundings: CgroupSurroundings,
  newName: () => string,
  signal: AbortSignal,
): Promise<OpenedVersion> {
  using undo = new DisposableStack();
  try {
    const { directory, controllers } = ownGroupV2(surroundings.files);
    const refusals = cgroupControls.flatMap((control) => {
      const controller = cgroupV2.controllers[control];
      if (controller === undefined || controllers.includes(controller)) return [];
      const message = `${directory} has no controller ${controller}`;
      return [new CgroupRefusal("no-controllers", message)];
    });
    const controls = cgroupControls.filter((control) => {
      const controller = cgroupV2.controllers[control];
      return controller === undefined || controllers.includes(controller);
    });
    const passed = controls.flatMap((control) => cgroupV2.controllers[control] ?? []);
    if (passed.length === 0) return { ...nothing, refusals };
    const { longestMoveMs } = undo.use(passOn(surroundings, directory, passed));
    const tried = await tryOut(surroundings, cgroupV2, [{ directory, controls }], newName());
    signal.throwIfAborted();
    const { parents } = tried;
    if (parents.length === 0) return { ...nothing, refusals: tried.refusals };
    const makings = { ...surroundings, dialect: cgroupV2, parents };
    // Right after the worker itself was moved, the next move is quick whatever the host.
    const firstMs = Math.max(longestMoveMs, tried.joinMs);
    const joinMs = await retime(firstMs, surroundings, makings, newName, signal);
    return { makings, refusals, joinMs, own: undo.move() };
  } catch (error) {
    return { ...nothing, refusals: [requireRefusal(error)] };
  }
}

/**
 * Version 1: a hierarchy for each controller, or one for several. Each may be the worker's or not.
 */
export async function openV1(
  surroundings: CgroupSurroundings,
  newName: () => string,
  signal: AbortSignal,
): Promise<OpenedVersion> {
  const controlsOf = new Map<string, CgroupControl[]>();
  const refusals: CgroupRefusal[] = [];
  for (const control of cgroupControls) {
    try {
      const controller = cgroupV1.controllers[control] ?? control;
      const { directory } = ownGroupV1(surroundings.files, controller);
      controlsOf.set(directory, [...(controlsOf.get(directory) ?? []), control]);
    } catch (error) {
      refusals.push(requireRefusal(error));
    }
  }
  if (controlsOf.size === 0) return { ...nothing, refusals };
  try {
    const candidates = [...controlsOf].map(([directory, controls]) => ({ directory, controls }));
    const tried = await tryOut(surroundings, cgroupV1, candidates, newName());
    signal.throwIfAborted();
    refusals.push(...tried.refusals);
    const { parents } = tried;
    if (parents.length === 0) return { ...nothing, refusals };
    const makings = { ...surroundings, dialect: cgroupV1, parents };
    const joinMs = await retime(tried.joinMs, surroundings, makings, newName, signal);
    return { makings, refusals, joinMs, own: nothing.own };
  } catch (error) {
    return { ...nothing, refusals: [...refusals, requireRefusal(error)] };
  }
}

const nothing = {
  makings: undefined,
  joinMs: 0,
  own: { [Symbol.dispose]: () => undefined },
} as const;

function requireRefusal(error: unknown): CgroupRefusal {
  if (!(error instanceof CgroupRefusal)) throw error;
  return error;
}

/** What came of a trial. */
interface Tried {
  /** Those of the parents that can be used. */
  readonly parents: readonly CgroupParent[];
  readonly refusals: readonly CgroupRefusal[];
  /** Milliseconds that the process took to join the groups below them, one after the other. */
  readonly joinMs: number;
}

/**
 * Makes a group with limits below each of the candidates, moves a short process into all of them,
 * and removes them. Throws CgroupRefusal where there is no such process.
 */
async function tryOut(
  surroundings: CgroupSurroundings,
  dialect: CgroupDialect,
  candidates: readonly CgroupParent[],
  name: string,
): Promise<Tried> {
  const { clock, files } = surroundings;
  const parents: CgroupParent[] = [];
  const refusals: CgroupRefusal[] = [];
  let joinMs = 0;
  await using groups = new AsyncDisposableStack();
  // Disposed before the groups, so that they are empty then.
  await using process = await startWaiting();
  for (const parent of candidates) {
    try {
      const makings = { ...surroundings, dialect, parents: [parent] };
      const group = groups.use(CgroupOfSandbox.make(makings, name, trialLimits));
      const startMs = clock.monotonicMs();
      await group.add(process.pid);
      const tookMs = clock.monotonicMs() - startMs;
      const present = files.processesIn(join(parent.directory, name));
      if (!present.includes(process.pid)) throw new Error("the kernel moved no process");
      joinMs += tookMs;
      parents.push(parent);
    } catch (error) {
      const cause = error instanceof SandboxError ? error.cause : error;
      refusals.push(refusalOf(cause, parent.directory));
    }
  }
  return { parents, refusals, joinMs };
}

/**
 * The shortest time that joining took: one alone may have been long because the processors were
 * busy.
 */
async function retime(
  firstMs: number,
  surroundings: CgroupSurroundings,
  makings: CgroupMakings,
  newName: () => string,
  signal: AbortSignal,
): Promise<number> {
  let joinMs = firstMs;
  if (!surroundings.timesJoin) return joinMs;
  for (let times = 0; times < maxRetimings && isNoticeable(joinMs); times++) {
    await makings.clock.sleep(retimingPauseMs, signal);
    const { dialect, parents } = makings;
    const again = await tryOut(surroundings, dialect, parents, newName());
    joinMs = Math.min(joinMs, again.joinMs);
  }
  return joinMs;
}

/** A process that waits until it is disposed. */
async function startWaiting(): Promise<AsyncDisposable & { readonly pid: number }> {
  const child = spawn("/bin/sh", ["-c", "read -r end"], {
    cwd: "/",
    env: {},
    stdio: ["pipe", "ignore", "ignore"],
  });
  try {
    await once(child, "spawn");
  } catch (error) {
    throw new CgroupRefusal("refused", "there is no process to try groups with", { cause: error });
  }
  const { pid = 0 } = child;
  return {
    pid,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}
