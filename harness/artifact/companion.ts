/**
 * The companion of an artifact, in which agents keep what they know of each version: version N of
 * `report.csv` has version N of `report.csv.metadata.json`.
 */
import { Readable } from "node:stream";
import { artifactKey, filenameOf } from "../../worker/artifacts/scope.ts";
import type { ArtifactSource, SavedArtifact } from "../../worker/artifacts/store.ts";
import type { CallArtifacts } from "../artifacts.ts";
import { CommandError } from "../context.ts";

const suffix = ".metadata.json";
const mimeType = "application/json";

/** Milliseconds to delete a version whose companion cannot be saved. */
const rollbackTimeoutMs = 5_000;

/** A saved version, and what its companion says of it. */
export interface Described {
  readonly filename: string;
  readonly mimeType: string;
  readonly description: string | undefined;
  readonly saved: SavedArtifact;
  readonly savedAtMs: number;
}

/** Whether a filename is that of a companion. Agents do not list these. */
export function isCompanion(filename: string): boolean {
  return filename.endsWith(suffix);
}

/** Throws StoreError `invalid-name` where the longer name is refused. */
export function companionOf({ scope }: CallArtifacts, filename: string): string {
  return filenameOf(artifactKey(scope, filename + suffix));
}

/**
 * Saves the companion, and returns its version. Else deletes the version that it is about, and
 * rejects with StoreError, with the signal's reason, or with CommandError if that version stays.
 */
export async function saveCompanion(
  { store, scope }: CallArtifacts,
  companion: string,
  described: Described,
  signal: AbortSignal,
): Promise<number> {
  const { filename, saved } = described;
  try {
    const { version } = await store.save(
      scope,
      companion,
      sourceOf(described),
      { mimeType },
      signal,
    );
    return version;
  } catch (error) {
    const over = AbortSignal.timeout(rollbackTimeoutMs);
    const isDeleted = await store.deleteVersion(scope, filename, saved, over).catch(() => false);
    if (isDeleted) throw error;
    const name = `${filename}@${saved.version}`;
    throw new CommandError(`${name} is saved, but not its metadata`, { cause: error });
  }
}

function sourceOf(described: Described): ArtifactSource {
  const bytes = Buffer.from(contentOf(described));
  return { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes], { objectMode: false }) };
}

/** As `save_artifact_with_metadata` of agents writes it with Python's `json.dumps`, in ASCII. */
function contentOf({ filename, mimeType, description, saved, savedAtMs }: Described): string {
  const metadata = {
    filename,
    mime_type: mimeType,
    size_bytes: saved.sizeBytes,
    timestamp_utc: savedAtMs / 1_000,
    description,
    schema: { type: mimeType, inferred: false, error: null },
  };
  return JSON.stringify(metadata, undefined, 2).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
