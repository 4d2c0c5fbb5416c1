/**
 * `harness artifact list` and `harness artifact versions`: what a session and its user have.
 */
import { notFound } from "../../worker/artifacts/failures.ts";
import { artifactKey, filenameOf } from "../../worker/artifacts/scope.ts";
import { StoreError } from "../../worker/artifacts/store.ts";
import type { CallArtifacts } from "../artifacts.ts";
import { type Context, exit } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { isCompanion } from "./companion.ts";
import { type ArtifactOptions, openArtifacts, usable } from "./options.ts";

/** Requests to the store at once. */
const maxConcurrent = 8;

/** The command line. */
export interface ListOptions extends ArtifactOptions {
  /** Whether MIME type and size are shown, one request more for each version. */
  readonly long?: boolean;
}

/** What is printed of a version; an object of `--json`. */
interface Row {
  readonly filename: string;
  readonly version: number;
  readonly mime_type?: string;
  readonly size_bytes?: number;
}

/**
 * Prints each artifact with its latest version, without companions unless `all`. Rejects with
 * UsageError or StoreError.
 */
export async function listArtifacts(
  options: ListOptions & { readonly all?: boolean },
  context: Context,
): Promise<number> {
  const { signal } = context;
  await using artifacts = await openArtifacts(options, "read", context);
  const { store, scope } = artifacts;
  const isListed = (name: string): boolean => options.all === true || !isCompanion(name);
  const names = (await store.names(scope, signal)).filter(isListed);
  const latest = async (filename: string): Promise<Row | undefined> => {
    const version = (await store.versions(scope, filename, signal)).at(-1);
    // It was deleted, or others have put something else below its name.
    return version === undefined ? undefined : rowOf({ filename, version }, artifacts);
  };
  const rowOf = options.long ? withFacts(signal) : withoutFacts;
  await print(names, latest, options, context);
  return exit.success;
}

/** Prints the versions of a name. Rejects with UsageError or StoreError `not-found`. */
export async function listVersions(
  name: string,
  options: ListOptions,
  context: Context,
): Promise<number> {
  const { signal } = context;
  await using artifacts = await openArtifacts(options, "read", context);
  const { store, scope } = artifacts;
  const key = usable(() => artifactKey(scope, name));
  const filename = filenameOf(key);
  const versions = await store.versions(scope, filename, signal);
  if (versions.length === 0) throw notFound(key, undefined);
  const rowOf = options.long ? withFacts(signal) : withoutFacts;
  await print(versions, (version) => rowOf({ filename, version }, artifacts), options, context);
  return exit.success;
}

/** Prints rows in their order, a few at a time. */
async function print<T>(
  items: readonly T[],
  rowOf: (item: T) => Promise<Row | undefined>,
  { json }: ListOptions,
  { out, signal }: Context,
): Promise<void> {
  for (let start = 0; start < items.length; start += maxConcurrent) {
    const rows = await Promise.all(items.slice(start, start + maxConcurrent).map(rowOf));
    for (const row of rows.filter((row) => row !== undefined)) {
      out.line(printable(json ? JSON.stringify(row) : textOf(row)));
    }
    await out.ready(signal);
  }
}

/** No filename has a tab. */
function textOf({ filename, version, mime_type, size_bytes }: Row): string {
  const facts = mime_type === undefined ? [] : [mime_type, `${size_bytes} bytes`];
  return [`${filename}@${version}`, ...facts].join("\t");
}

type RowOf = (row: Row, artifacts: CallArtifacts) => Promise<Row | undefined>;

const withoutFacts: RowOf = (row) => Promise.resolve(row);

/** Undefined when the version has been deleted. */
function withFacts(signal: AbortSignal): RowOf {
  return async (row, { store, scope }) => {
    try {
      const { metadata, sizeBytes } = await store.stat(scope, row, signal);
      return { ...row, mime_type: metadata.mimeType, size_bytes: sizeBytes };
    } catch (error) {
      if (error instanceof StoreError && error.reason === "not-found") return undefined;
      throw error;
    }
  };
}
