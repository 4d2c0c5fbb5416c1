/**
 * Words for outputs of a failed call that the store still has.
 */
import { quote } from "../../artifacts/scope.ts";
import type { ArtifactVersion } from "../../protocol/errors.ts";
import { maxListedNames } from "./check-outputs.ts";

/** The first versions, for a log. */
export function listedVersions(versions: readonly ArtifactVersion[]): readonly string[] {
  return versions
    .slice(0, maxListedNames)
    .map(({ filename, version }) => `${quote(filename)} version ${version}`);
}

/** A sentence for an answer, without its full stop. */
export function remainingOutputs(versions: readonly ArtifactVersion[]): string {
  if (versions.length === 0) return "No output was kept";
  const more = versions.length - maxListedNames;
  const listed = [...listedVersions(versions), ...(more > 0 ? [`${more} more`] : [])];
  return `These outputs could not be deleted: ${listed.join(", ")}`;
}
