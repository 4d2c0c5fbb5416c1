/**
 * Detects workers that make calls run twice: another group with the same tools, or the same group
 * with another store of marks.
 */
import type { Announcement } from "../protocol/messages/announcement.ts";
import type { Clock } from "../support/clock.ts";

/** Milliseconds without an announcement until a worker is forgotten. */
export const forgottenMs = 100_000;
/** Largest number of remembered conflicts. */
export const maxRemembered = 1_000;
/** Largest number of tools in a message. */
const maxNamedTools = 5;
/** Characters of another worker's name in a message. */
const maxNameLength = 100;

/** The conflicts with other workers, by their last announcements. */
export class Conflicts {
  readonly #clock: Clock;
  /** By instance, in the order of their announcements. */
  readonly #found = new Map<string, { readonly conflict: string; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Compares an announcement with this worker's own. */
  record(own: Announcement, other: Announcement): void {
    this.#found.delete(other.instance);
    if (other.instance === own.instance) return;
    const conflict = conflictOf(own, other);
    if (conflict === undefined) return;
    this.#found.set(other.instance, { conflict, atMs: this.#clock.monotonicMs() });
    const [oldest] = this.#found.keys();
    if (this.#found.size > maxRemembered && oldest !== undefined) this.#found.delete(oldest);
  }

  /** Distinct messages for the operator. */
  get current(): readonly string[] {
    const oldestMs = this.#clock.monotonicMs() - forgottenMs;
    for (const [instance, { atMs }] of this.#found) {
      if (atMs < oldestMs) this.#found.delete(instance);
    }
    return [...new Set(Array.from(this.#found.values(), ({ conflict }) => conflict))];
  }
}

function conflictOf(own: Announcement, other: Announcement): string | undefined {
  if (other.group === own.group) {
    if (other.store === own.store) return undefined;
    return `worker ${printable(other.worker)} of this group has another artifact store: a call can run twice`;
  }
  const tools = new Set(own.tools);
  const shared = other.tools.filter((tool) => tools.has(tool)).toSorted();
  if (shared.length === 0) return undefined;
  const named = shared.slice(0, maxNamedTools).map(printable).join(", ");
  const more = shared.length > maxNamedTools ? ` and ${shared.length - maxNamedTools} more` : "";
  return `group ${printable(other.group)} has tools of this group: each call runs twice (${named}${more})`;
}

function printable(name: string): string {
  return JSON.stringify(name.slice(0, maxNameLength));
}
