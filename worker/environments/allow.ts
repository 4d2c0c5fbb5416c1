/**
 * The names of packages that an operator allows (`PACKAGE_ALLOW`).
 */
import { normalName } from "../manifest/requirements/python.ts";
import { EnvironmentError } from "./environments.ts";

/** Refuses packages by their names. */
export class AllowedPackages {
  readonly #names: ReadonlySet<string> | undefined;

  /** @param names undefined allows every package */
  constructor(names: readonly string[] | undefined) {
    this.#names = names && new Set(names.map(comparable));
  }

  /** Throws EnvironmentError for the first name that is not allowed. */
  require(names: Iterable<string>): void {
    for (const name of names) {
      if (this.#names === undefined || this.#names.has(comparable(name))) continue;
      throw new EnvironmentError(`package "${name}" is not in PACKAGE_ALLOW`, {
        publicReason: "one of its packages is not allowed by the worker",
      });
    }
  }
}

/** Names of npm are compared as they are, but for their case; those of Python by PEP 503. */
function comparable(name: string): string {
  return /^@|~/.test(name) ? name.toLowerCase() : normalName(name);
}
