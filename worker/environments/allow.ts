/**
 * The names of packages that an operator allows (`PACKAGE_ALLOW`).
 */
import type { Runtime } from "../manifest/manifest.ts";
import { normalName } from "../manifest/requirements/python.ts";
import { EnvironmentError } from "./environments.ts";

/** Refuses packages by their names. */
export class AllowedPackages {
  readonly #names: readonly string[] | undefined;

  /** @param names undefined allows every package */
  constructor(names: readonly string[] | undefined) {
    this.#names = names;
  }

  /** Throws EnvironmentError for the first name that is not allowed. */
  require(runtime: Runtime, names: Iterable<string>): void {
    if (this.#names === undefined) return;
    // npm compares names as they are, PyPI by PEP 503.
    const comparable = runtime === "python" ? normalName : (name: string): string => name;
    const allowed = new Set(this.#names.map(comparable));
    for (const name of names) {
      if (allowed.has(comparable(name))) continue;
      throw new EnvironmentError(`package "${name}" is not in PACKAGE_ALLOW`, {
        publicReason: "one of its packages is not allowed by the worker",
      });
    }
  }
}
