/**
 * A control group that counts the processor time of the processes started in it, and of all below
 * them, ended ones included: many sandboxes end each second, and /proc forgets them.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ownGroupV1, ownGroupV2 } from "../../worker/sandbox/cgroup/discovery.ts";
import { CgroupFiles, isErrno } from "../../worker/sandbox/cgroup/files.ts";
import { systemClock } from "../../worker/support/clock.ts";

const nanosecondsPerSecond = 1_000_000_000;
const microsecondsPerSecond = 1_000_000;
/** Milliseconds between two attempts to remove a group whose processes are ending, and of all. */
const removal = { pauseMs: 20, timeoutMs: 5_000 };

/** A group below that of this process. Its owner disposes it after its processes. */
export class ProcessorGroup implements AsyncDisposable {
  readonly #files = new CgroupFiles();
  readonly #parent: string;
  readonly #directory: string;
  readonly #isV1: boolean;

  /** Throws where this process may not make one: mostly if it is not root's. */
  constructor(name: string) {
    const v1 = attempt(() => ownGroupV1(this.#files, "cpuacct").directory);
    this.#isV1 = v1 !== undefined;
    this.#parent = v1 ?? ownGroupV2(this.#files).directory;
    this.#directory = join(this.#parent, `str-bench-${name}-${process.pid}`);
    this.#sweep();
    this.#files.make(this.#directory);
  }

  /** Runs `start` while this process is in the group, so that processes it starts are, too. */
  async around<T>(start: () => Promise<T>): Promise<T> {
    await this.#files.move(join(this.#directory, "cgroup.procs"), process.pid);
    try {
      return await start();
    } finally {
      await this.#files.move(join(this.#parent, "cgroup.procs"), process.pid);
    }
  }

  /** Processor seconds so far. */
  get seconds(): number {
    if (this.#isV1) return Number(this.#read("cpuacct.usage")) / nanosecondsPerSecond;
    const [, microseconds] = /^usage_usec (\d+)$/m.exec(this.#read("cpu.stat")) ?? [];
    return Number(microseconds) / microsecondsPerSecond;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const endMs = performance.now() + removal.timeoutMs; ;) {
      try {
        return this.#files.remove(this.#directory);
      } catch (error) {
        if (!isErrno(error, "EBUSY") || performance.now() > endMs) throw error;
      }
      await systemClock.sleep(removal.pauseMs);
    }
  }

  /** Removes groups of benchmarks that were killed. */
  #sweep(): void {
    for (const name of this.#files.groupsIn(this.#parent)) {
      const [, pid] = /^str-bench-\w+-(\d+)$/.exec(name) ?? [];
      if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
      attempt(() => this.#files.remove(join(this.#parent, name)));
    }
  }

  #read(file: string): string {
    return this.#files.read(join(this.#directory, file)) ?? "";
  }
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
