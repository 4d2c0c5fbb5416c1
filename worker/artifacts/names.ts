/**
 * Collects the filenames of a session and its user.
 */
import { type ArtifactLevel, listedFilename } from "./scope.ts";
import { type ArtifactScope, StoreError } from "./store.ts";

/** Filenames of one listing, at most. */
export const maxNames = 100_000;

/** Begins the errors of a listing. */
export function namesNotListed({ sessionId }: ArtifactScope): string {
  return `The artifacts of session ${sessionId} could not be listed`;
}

/** The error of a listing that does not end. */
export function tooManyNames(scope: ArtifactScope): StoreError {
  return new StoreError("too-many-names", `${namesNotListed(scope)}: there are too many of them.`);
}

/** A listing under way. */
export class NameList {
  readonly #filenames: string[] = [];
  readonly #scope: ArtifactScope;
  readonly #max: number;

  constructor(scope: ArtifactScope, max = maxNames) {
    this.#scope = scope;
    this.#max = max;
  }

  /** Adds a name of the store, unless `artifactKey` refuses it. Throws `too-many-names`. */
  add(level: ArtifactLevel, name: string): void {
    const filename = listedFilename(level, name);
    if (filename === undefined) return;
    if (this.#filenames.length >= this.#max) {
      const doing = namesNotListed(this.#scope);
      throw new StoreError("too-many-names", `${doing}: it has more than ${this.#max}.`);
    }
    this.#filenames.push(filename);
  }

  /** All of them, in the order of `Array.sort`. */
  sorted(): readonly string[] {
    return this.#filenames.toSorted();
  }
}
