/**
 * Sandboxes that stand still at a chosen moment of their making, and a look at what is left of
 * sandboxes on this host.
 */
import { execFile } from "node:child_process";
import { chmod, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, vi } from "vitest";
import { ownerTagOptions, ownerTag } from "../../../worker/sandbox/orphans.ts";

const run = promisify(execFile);

/**
 * Where a sandbox stands still: before bubblewrap itself runs; when its first process is born and
 * not let go, which then waits for ever if bubblewrap is killed; when everything is mounted, before
 * that process asks to die with its parent.
 */
export type HoldPoint = "unmade" | "born" | "mounted";

/**
 * A bubblewrap for `SANDBOX_BWRAP_BIN` that makes sandboxes as usual until it is told to hold them.
 */
export class HeldSandboxes {
  /** The program. */
  readonly bwrapBin: string;
  readonly #order: string;
  readonly #gate: string;
  /** The options without one that bubblewrap does not take together with the means to hold it. */
  readonly #options: string;

  private constructor(directory: string) {
    this.bwrapBin = join(directory, "bwrap");
    this.#order = join(directory, "hold-at");
    this.#gate = join(directory, "gate");
    this.#options = join(directory, "options");
  }

  /** @param directory one that sandboxes can reach; its owner removes it */
  static async in(directory: string): Promise<HeldSandboxes> {
    const held = new HeldSandboxes(directory);
    await run("mkfifo", [held.#gate]);
    await writeFile(held.#options, "");
    // Sandboxes may run as another user.
    for (const path of [held.#gate, held.#options]) await chmod(path, 0o666);
    await writeFile(held.bwrapBin, held.#program());
    await chmod(held.bwrapBin, 0o755);
    return held;
  }

  /** Holds the sandboxes that are made from now on. */
  async holdAt(point: HoldPoint): Promise<void> {
    await writeFile(this.#order, point);
  }

  /** Has later sandboxes made as usual. One that stands still goes on standing. */
  async forget(): Promise<void> {
    await rm(this.#order);
  }

  /** Lets the sandbox that stands still go on, and has later ones made as usual. */
  async release(): Promise<void> {
    await this.forget();
    await run("sh", ["-c", 'echo 1<>"$0"', this.#gate]);
  }

  /**
   * bubblewrap reads the gate, and has it open for writing as well, so that there is no end to
   * read.
   */
  #program(): string {
    return `#!/bin/sh
case "$(cat ${this.#order} 2> /dev/null)" in
  unmade) while [ -e ${this.#order} ]; do sleep 0.01; done ;;
  born)
    sed -z '/^--disable-userns$/d' <&3 > ${this.#options}
    exec /usr/bin/bwrap --info-fd 8 --userns-block-fd 9 "$@" \\
      3< ${this.#options} 8> /dev/null 9<> ${this.#gate}
    ;;
  mounted) exec /usr/bin/bwrap --block-fd 9 "$@" 9<> ${this.#gate} ;;
esac
exec /usr/bin/bwrap "$@"
`;
  }
}

/** A process of a sandbox. */
export interface SandboxProcess {
  readonly pid: number;
  /** Name of its program: `bwrap` for all that run nothing of a tool. */
  readonly program: string;
  /** Whether it has the work directory mounted. */
  readonly isInside: boolean;
}

/** Looks for what is alive of the sandboxes of some workers. */
export class SandboxWatch {
  readonly #workBase: string;
  /** What the command lines of their processes begin with, behind the program. */
  readonly #tags = new Set<string>();

  /** @param workBase `SANDBOX_WORK_DIR` of the workers, in a directory that nothing else is in */
  constructor(workBase: string) {
    this.#workBase = workBase;
  }

  /** Waits until the one sandbox that is made stands still at a point. */
  async reaches(point: HoldPoint): Promise<void> {
    const expected = { unmade: [false], born: [false, false], mounted: [false, true] }[point];
    await vi.waitFor(
      async () => {
        const found = (await this.processes()).map(({ isInside }) => isInside);
        expect(found.toSorted()).toEqual(expected);
      },
      { timeout: 20_000, interval: 20 },
    );
  }

  /** Remembers the workers that are there now. */
  async meet(): Promise<void> {
    for (const name of await readdir(this.#workBase)) {
      this.#tags.add(ownerTagOptions(ownerTag(name)).join("\0"));
    }
  }

  /** Processes, but zombies, of sandboxes of the workers met, whatever has become of these. */
  async processes(): Promise<readonly SandboxProcess[]> {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    return (await Promise.all(pids.map((pid) => this.#look(pid)))).flat();
  }

  async #look(pid: string): Promise<readonly SandboxProcess[]> {
    const [status, commandLine, mounts] = await Promise.all([
      readProc(pid, "status"),
      readProc(pid, "cmdline"),
      readProc(pid, "mountinfo"),
    ]);
    if (/^State:\s+[ZX]/m.test(status)) return [];
    const isInside = mounts.includes(`/${basename(dirname(this.#workBase))}/`);
    const isTagged = [...this.#tags].some((tag) => commandLine.includes(tag));
    if (!isInside && !isTagged) return [];
    const program = /^Name:\s+(.*)$/m.exec(status)?.[1] ?? "";
    return [{ pid: Number(pid), program, isInside }];
  }
}

function readProc(pid: string, file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, "latin1").catch(() => "");
}
