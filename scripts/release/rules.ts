/**
 * Which version a release may have: a greater one, by at least what the changelog asks for.
 */
import { gt, inc, lt, major, type ReleaseType } from "semver";
import { breaking, entries, headings } from "./changelog.ts";

const plainVersion = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/;
const minorHeadings: readonly string[] = ["Added", "Changed", "Deprecated"];
/** Before 1.0 each step counts one lower, as in the ranges `^0.x.y` of npm. */
const beforeOne = { major: "minor", minor: "patch", patch: "patch" } as const;

export interface VersionFacts {
  readonly version: string;
  /** The version in package.json. */
  readonly current: string;
  /** The highest released version; undefined before the first release. */
  readonly last: string | undefined;
  /** The text of the changelog's [Unreleased]. */
  readonly unreleased: string;
}

/** The smallest version that may follow `last` with these changes. */
export function smallestNext(last: string, unreleased: string): string {
  const step = stepOf(unreleased);
  const next = inc(last, (major(last) === 0 ? beforeOne[step] : step) satisfies ReleaseType);
  if (next === null) throw new TypeError(`not a version: ${last}`);
  return next;
}

/** Reasons not to release this version, for people; empty if there are none. */
export function versionRefusals(facts: VersionFacts): readonly string[] {
  const { version, current, last, unreleased } = facts;
  if (!plainVersion.test(version)) {
    return [`${version} is not MAJOR.MINOR.PATCH; npm and pip spell pre-releases differently`];
  }
  const refusals: string[] = [];
  if (lt(version, current)) refusals.push(`${version} is smaller than ${current} of package.json`);
  if (entries(unreleased).length === 0) {
    refusals.push("[Unreleased] of CHANGELOG.md has no entry");
  }
  if (last === undefined) return refusals;
  const smallest = smallestNext(last, unreleased);
  if (!gt(version, last)) {
    refusals.push(`${version} is not greater than ${last}, the last tag`);
  } else if (lt(version, smallest)) {
    refusals.push(`${version} is too small: after ${last}, [Unreleased] asks for ${smallest}`);
  }
  return refusals;
}

function stepOf(unreleased: string): keyof typeof beforeOne {
  const kinds = headings(unreleased);
  if (kinds.includes("Removed") || entries(unreleased).some((entry) => entry.includes(breaking))) {
    return "major";
  }
  return kinds.some((kind) => minorHeadings.includes(kind)) ? "minor" : "patch";
}
