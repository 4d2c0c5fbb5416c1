/**
 * Opens one version of control groups: where sandboxes' groups are to be, and a trial of each place.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { CgroupControl } from "./cgroup.ts";
import { passOn } from "./delegation.ts";
import { type CgroupDialect, cgroupV1, cgroupV2 } from "./dialect.ts";
import { ownGroupV1, ownGroupV2 } from "./discovery.ts";
import { type CgroupMakings, CgroupOfSandbox, type CgroupParent } from "./group.ts";
import { CgroupRefusal, refusalOf } from "./refusal.ts";
import { SandboxError } from "../sandbox.ts";

/** Everything that control groups can keep. */
export const cgroupControls: readonly CgroupControl[] = ["memory", "processes", "cpu"];

/** Any limits that a shell fits in. */
const trialLimits = { memoryBytes: 64 * 1024 * 1024, processes: 8 };

/** What is there whatever the version. */
export type CgroupSurroundings = Omit<CgroupMakings, "dialect" | "parents">;

/** What can be used of a version, and what not. Nothing can where `makings` is undefined. */
export interface OpenedVersion {
  readonly makings: CgroupMakings | undefined;
  readonly refusals: readonly CgroupRefusal[];
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
    undo.use(passOn(surroundings.files, directory, passed));
    const parent = { directory, controls };
    await tryOut(surroundings, cgroupV2, parent, newName());
    signal.throwIfAborted();
    const makings = { ...surroundings, dialect: cgroupV2, parents: [parent] };
    return { makings, refusals, own: undo.move() };
  } catch (error) {
    if (!(error instanceof CgroupRefusal)) throw error;
    return { ...nothing, refusals: [error] };
  }
}

/** Version 1: a hierarchy for each controller, or one for several. Each may be the worker's or not. */
export async function openV1(
  surroundings: CgroupSurroundings,
  newName: () => string,
  signal: AbortSignal,
): Promise<OpenedVersion> {
  const controlsOf = new Map<string, CgroupControl[]>();
  const refusals: CgroupRefusal[] = [];
  const parents: CgroupParent[] = [];
  for (const control of cgroupControls) {
    try {
      const controller = cgroupV1.controllers[control] ?? control;
      const { directory } = ownGroupV1(surroundings.files, controller);
      controlsOf.set(directory, [...(controlsOf.get(directory) ?? []), control]);
    } catch (error) {
      refusals.push(requireRefusal(error));
    }
  }
  for (const [directory, controls] of controlsOf) {
    try {
      await tryOut(surroundings, cgroupV1, { directory, controls }, newName());
      parents.push({ directory, controls });
    } catch (error) {
      refusals.push(requireRefusal(error));
    }
    signal.throwIfAborted();
  }
  if (parents.length === 0) return { ...nothing, refusals };
  const makings = { ...surroundings, dialect: cgroupV1, parents };
  return { makings, refusals, own: nothing.own };
}

const nothing = { makings: undefined, own: { [Symbol.dispose]: () => undefined } } as const;

function requireRefusal(error: unknown): CgroupRefusal {
  if (!(error instanceof CgroupRefusal)) throw error;
  return error;
}

/** Makes a group with limits, moves a short process in, and removes it. Throws CgroupRefusal. */
async function tryOut(
  surroundings: CgroupSurroundings,
  dialect: CgroupDialect,
  parent: CgroupParent,
  name: string,
): Promise<void> {
  const makings = { ...surroundings, dialect, parents: [parent] };
  try {
    await using group = CgroupOfSandbox.make(makings, name, trialLimits);
    await using process = await startWaiting();
    await group.add(process.pid);
    const present = makings.files.processesIn(join(parent.directory, name));
    if (!present.includes(process.pid)) throw new Error("the kernel moved no process");
  } catch (error) {
    throw refusalOf(error instanceof SandboxError ? error.cause : error, parent.directory);
  }
}

/** A process that waits until it is disposed. */
async function startWaiting(): Promise<AsyncDisposable & { readonly pid: number }> {
  const child = spawn("/bin/sh", ["-c", "read -r end"], {
    cwd: "/",
    env: {},
    stdio: ["pipe", "ignore", "ignore"],
  });
  await once(child, "spawn");
  const { pid = 0 } = child;
  return {
    pid,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}
