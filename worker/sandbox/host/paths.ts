/**
 * Where the paths of sandboxes are on the host, for a backend that mounts nothing.
 */
import { sep } from "node:path";
import { type ReadOnlyMount, workDirInside } from "../sandbox.ts";

/** The places that one sandbox's paths stand for. */
export class HostPaths {
  /** The deepest first: a mount may lie in another. */
  readonly #places: readonly ReadOnlyMount[];

  constructor(workDir: string, mounts: readonly ReadOnlyMount[]) {
    const places = [...mounts, { source: workDir, target: workDirInside }];
    this.#places = places.sort((one, other) => other.target.length - one.target.length);
  }

  /** The host's name of a path inside; a path that is none stays what it is. */
  locate(path: string): string {
    const place = this.#places.find(
      ({ target }) => path === target || path.startsWith(target + sep),
    );
    return place === undefined ? path : place.source + path.slice(place.target.length);
  }

  /** The same for each part of a list of paths, as `PATH` is one. */
  locateAll(list: string): string {
    return list
      .split(":")
      .map((path) => this.locate(path))
      .join(":");
  }
}
