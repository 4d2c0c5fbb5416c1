/**
 * Collects the filenames of a session and its user.
 */
import { type ArtifactLevel, listedFilename } from "./scope.ts";
import { StoreError } from "./store.ts";

/** Filenames of one listing, at most. */
export const maxNames = 100_000;

/** Begins the errors of a listing. */
export const namesNotListed = "The artifacts of the session could not be listed";

/** The error of a listing that does not end. */
export function tooManyNames(): StoreError {
  return new StoreError("too-many-names", `${namesNotListed}: there are too many of them.`);
}

/** A listing under way. */
export class NameList {
  readonly #filenames: string[] = [];
  readonly #max: number;

  constructor(max = maxNames) {
    this.#max = max;
  }

  /** Adds a name of the store, unless `artifactKey` refuses it. Throws `too-many-names`. */
  add(level: ArtifactLevel, name: string): void {
    const filename = listedFilename(level, name);
    if (filename === undefined) return;
    if (this.#filenames.length >= this.#max) {
      throw new StoreError("too-many-names", `${namesNotListed}: it has more than ${this.#max}.`);
    }
    this.#filenames.push(filename);
  }

  /** All of them, in the order of `Array.sort`. */
  sorted(): readonly string[] {
    return this.#filenames.toSorted();
  }
}
