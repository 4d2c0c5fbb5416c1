/**
 * Tries groups with a short process, since the kernel may refuse what files promise.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { SandboxError } from "../sandbox.ts";
import { type CgroupMakings, CgroupOfSandbox, type CgroupParent } from "./group.ts";
import { CgroupRefusal, refusalOf } from "./refusal.ts";

/** Any limits that a shell fits in. */
const trialLimits = { memoryBytes: 64 * 1024 * 1024, processes: 8 };

/** Result of a trial. */
export interface Trial {
  /** The parents that can be used. */
  readonly parents: readonly CgroupParent[];
  readonly refusals: readonly CgroupRefusal[];
  /** Milliseconds that the process took to join the groups, one after the other. */
  readonly joinMs: number;
}

/**
 * Makes a group with limits below each parent, moves a process into all of them, and removes them.
 * Throws CgroupRefusal where no process can be started.
 */
export async function tryGroups(makings: CgroupMakings, name: string): Promise<Trial> {
  const { clock, files } = makings;
  const parents: CgroupParent[] = [];
  const refusals: CgroupRefusal[] = [];
  let joinMs = 0;
  await using groups = new AsyncDisposableStack();
  // Disposed before the groups, so that they are empty then.
  await using process = await startWaiting();
  for (const parent of makings.parents) {
    try {
      const one = { ...makings, parents: [parent] };
      const group = groups.use(CgroupOfSandbox.make(one, name, trialLimits));
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
