/**
 * Groups of sandboxes that are gone, for sandboxes with the same limits: to make and remove one
 * costs more than all other work for it.
 */
import type { CgroupLimits } from "./dialect.ts";
import type { CgroupOfSandbox } from "./group.ts";

/** Groups that are kept: each holds some memory of the kernel. */
export const maxKept = 16;

/** Owns what it keeps. Its owner disposes it after the last sandbox is gone. */
export class CgroupStock implements AsyncDisposable {
  /** The oldest first. */
  readonly #kept = new Set<CgroupOfSandbox>();
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
    if (!this.#isOfUse) return undefined;
    const group = [...this.#kept].findLast(
      ({ limits }) => limits?.memoryBytes === memoryBytes && limits.processes === processes,
    );
    if (group === undefined) return undefined;
    this.#isOfUse = group.renew();
    if (!this.#isOfUse) return undefined;
    this.#kept.delete(group);
    return group;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#kept].map((group) => group[Symbol.asyncDispose]()));
  }
}
