/**
 * Groups of sandboxes that are gone, for sandboxes with the same limits: to make and remove one
 * costs more than all other work for it.
 */
import type { CgroupLimits } from "./dialect.ts";
import type { CgroupOfSandbox } from "./group.ts";

/**
 * Groups that are kept, for as many idle sandboxes as a tool has by default. Each holds some memory
 * of the kernel.
 */
export const maxKept = 32;

/** Owns what it keeps. Its owner disposes it after the last sandbox is gone. */
export class CgroupStock implements AsyncDisposable {
  /** The oldest first. */
  readonly #kept = new Set<CgroupOfSandbox>();
  readonly #dropping = new Set<Promise<void>>();
  /** Whether this kernel lets groups count anew, as far as tried. */
  #isOfUse = true;

  /** Keeps a group whose sandbox is gone, or disposes it, or another one in its place. */
  async keep(group: CgroupOfSandbox): Promise<void> {
    const isKept = this.#isOfUse && group.release();
    if (isKept) this.#kept.add(group);
    const [oldest] = this.#kept;
    const excess = this.#kept.size > maxKept ? oldest : isKept ? undefined : group;
    if (excess === undefined) return;
    this.#kept.delete(excess);
    await excess[Symbol.asyncDispose]();
  }

  /** A group as good as new; the caller owns it. Undefined where there is none. */
  take({ memoryBytes, processes }: CgroupLimits): CgroupOfSandbox | undefined {
    for (const group of [...this.#kept].reverse()) {
      if (!this.#isOfUse) return undefined;
      const { limits } = group;
      if (limits?.memoryBytes !== memoryBytes || limits.processes !== processes) continue;
      this.#kept.delete(group);
      const outcome = group.renew();
      if (outcome === "renewed") return group;
      this.#drop(group);
      if (outcome === "refused") this.#giveUp();
    }
    return undefined;
  }

  #giveUp(): void {
    this.#isOfUse = false;
    for (const group of this.#kept) this.#drop(group);
    this.#kept.clear();
  }

  /** Its removal reports its own failures. */
  #drop(group: CgroupOfSandbox): void {
    const dropping = group[Symbol.asyncDispose]().finally(() => this.#dropping.delete(dropping));
    this.#dropping.add(dropping);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#dropping);
    await Promise.all([...this.#kept].map((group) => group[Symbol.asyncDispose]()));
  }
}
