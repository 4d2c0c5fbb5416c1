/**
 * Scratch directories of the doctor below shared bases. The next worker or doctor removes those of
 * a killed doctor, with their sandboxes.
 */
import { chmod, lstat, mkdtemp, opendir } from "node:fs/promises";
import { join } from "node:path";
import { type LivenessSocket, isInUse, openLivenessSocket } from "../../support/files/liveness.ts";
import { TreeRemover } from "./tree-remover.ts";
import { sweepWorkers } from "./sweep-workers.ts";

/** Default bases of scratch directories; every user can pass both. */
export const scratchBases = { work: "/tmp", canaries: "/var/tmp" } as const;

/** Prefixes of their names. */
const prefixes = { work: "str-doctor-", canaries: "str-attack-" } as const;
const scratchName = /^str-(doctor|attack)-[A-Za-z0-9]{6}$/;

/** A directory of this process. Disposing removes it, and rejects when something remains. */
export class ScratchDir implements AsyncDisposable {
  readonly path: string;
  readonly #remover: TreeRemover;
  readonly #liveness: LivenessSocket;

  private constructor(path: string, remover: TreeRemover, liveness: LivenessSocket) {
    this.path = path;
    this.#remover = remover;
    this.#liveness = liveness;
  }

  /**
   * Creates one in `base`. Rejects with the system's error.
   *
   * @param ownerId host uid of sandboxes that write below it, or undefined for the worker's own
   */
  static async make(
    kind: keyof typeof prefixes,
    base: string,
    mode: number,
    ownerId?: number,
  ): Promise<ScratchDir> {
    const remover = new TreeRemover(ownerId);
    const path = await mkdtemp(join(base, prefixes[kind]));
    try {
      await chmod(path, mode);
      return new ScratchDir(path, remover, await openLivenessSocket(path));
    } catch (error) {
      await remover.remove(path);
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#liveness[Symbol.asyncDispose]();
    await this.#remover.remove(this.path);
  }
}

/**
 * Removes scratch directories of dead processes of this user in `bases`, and ends their sandboxes.
 * Never rejects: `onRemoveFailed` receives each failure.
 */
export async function sweepScratch(
  bases: readonly string[],
  ownerId: number | undefined,
  onRemoveFailed: (error: unknown) => void,
): Promise<void> {
  const remover = new TreeRemover(ownerId);
  for (const base of new Set(bases))
    for (const path of await leftIn(base))
      await sweepWorkers(path, remover, onRemoveFailed)
        .then(() => remover.remove(path))
        .catch(onRemoveFailed);
}

async function leftIn(base: string): Promise<readonly string[]> {
  const left: string[] = [];
  try {
    for await (const entry of await opendir(base)) {
      const path = join(base, entry.name);
      // In a shared directory another user's entry may be a trap.
      if (entry.isDirectory() && scratchName.test(entry.name) && (await isOwn(path)))
        if (!(await isInUse(path))) left.push(path);
    }
  } catch {
    // A host may lack this base, or hide it from this user.
  }
  return left;
}

async function isOwn(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.uid === process.getuid?.();
}
