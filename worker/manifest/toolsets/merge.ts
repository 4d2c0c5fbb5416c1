/**
 * The worker's manifest with the tools of its toolsets.
 */
import type { Manifest } from "../manifest.ts";
import { limitRepeats } from "../nested-repeats.ts";
import { revisionOf } from "../revision.ts";
import { maxTools } from "../schema.ts";
import type { ToolsetPart } from "./part.ts";

/** A manifest with its warnings, one line each. */
export interface MergedManifest {
  readonly manifest: Manifest;
  readonly warnings: readonly string[];
}

/**
 * Adds the tools of toolsets, whole toolsets at a time. The manifest's own tools go first: a
 * toolset with a name of theirs, or with more tools than fit, is left out with a warning.
 */
export function withToolsets(file: MergedManifest, parts: readonly ToolsetPart[]): MergedManifest {
  if (parts.length === 0) return file;
  const tools = new Map(file.manifest.tools);
  const unavailable = new Map(file.manifest.unavailable);
  const warnings = [...file.warnings];
  const remote = new Set([...tools.values()].flatMap(({ gateway }) => gateway?.remote ?? []));
  const revisions = [file.manifest.revision];
  for (const { name, revision, manifest, warnings: own } of parts) {
    const names = [...manifest.tools.keys(), ...manifest.unavailable.keys()];
    const taken = names.find((tool) => tools.has(tool) || unavailable.has(tool));
    const elsewhere = names.find((tool) => remote.has(tool));
    const problem =
      taken !== undefined
        ? `the manifest has a tool "${taken}"`
        : elsewhere !== undefined
          ? `the manifest lists "${elsewhere}" as a tool of other workers`
          : tools.size + manifest.tools.size > maxTools
            ? `there would be more than ${maxTools} tools`
            : undefined;
    warnings.push(...own);
    if (problem !== undefined) {
      warnings.push(`toolset "${name}" is left out: ${problem}`);
      continue;
    }
    for (const [tool, entry] of manifest.tools) tools.set(tool, entry);
    for (const [tool, entry] of manifest.unavailable) unavailable.set(tool, entry);
    revisions.push(`${name} ${revision}`);
  }
  limitRepeats(tools);
  const merged = { revision: revisionOf(Buffer.from(revisions.join("\n"))), tools, unavailable };
  return { manifest: merged, warnings };
}
