/**
 * The files and artifacts of a call, from the command line to the request: found first, saved when
 * the call is made.
 */
import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { guessMimeType } from "../../worker/artifacts/mime.ts";
import type { ArtifactReference, PreloadedArtifact } from "../../worker/protocol/invocation.ts";
import { maxMessageBytes } from "../../worker/protocol/limits.ts";
import type { Json, JsonObject } from "../../worker/support/json/json.ts";
import type { CallArtifacts } from "../artifacts.ts";
import { UsageError } from "../context.ts";
import type { ToolCall } from "../messages.ts";
import type { Assignment } from "../options/option-values.ts";

/** A value for a parameter. */
type Entry<T> = readonly [parameter: string, value: T];

/** What a call brings along. */
export interface CallInputs {
  readonly artifacts: readonly Entry<ArtifactInput>[];
  readonly preloaded: readonly Entry<PreloadedArtifact>[];
  /** The parameters that take a list, also of one. */
  readonly lists: ReadonlySet<string>;
}

/**
 * Finds every file of `--artifact` and `--preload`. A parameter that is given several times, or as
 * `PARAM[]`, or whose argument is an array takes a list. Throws UsageError.
 */
export async function readInputs(options: {
  readonly args: JsonObject;
  readonly artifact: readonly Assignment[];
  readonly preload: readonly Assignment[];
}): Promise<CallInputs> {
  const preloaded = new Set(options.preload.map(({ parameter }) => parameter));
  const both = options.artifact.find(({ parameter }) => preloaded.has(parameter));
  if (both) throw new UsageError(`${both.parameter} is given by both --artifact and --preload`);
  return {
    artifacts: await entries(options.artifact, readArtifactInput),
    preloaded: await entries(options.preload, readPreload),
    lists: listsOf([...options.artifact, ...options.preload], options.args),
  };
}

function listsOf(assignments: readonly Assignment[], args: JsonObject): ReadonlySet<string> {
  const grouped = Map.groupBy(assignments, ({ parameter }) => parameter);
  const isList = ([parameter, group]: readonly [string, readonly Assignment[]]): boolean =>
    group.length > 1 || group.some(({ isElement }) => isElement) || hasArray(args, parameter);
  return new Set([...grouped].filter(isList).map(([parameter]) => parameter));
}

function hasArray(args: JsonObject, parameter: string): boolean {
  return Object.hasOwn(args, parameter) && Array.isArray(args[parameter]);
}

function entries<T>(
  assignments: readonly Assignment[],
  read: (assignment: Assignment) => Promise<T>,
): Promise<Entry<T>[]> {
  return Promise.all(
    assignments.map(async (assignment) => [assignment.parameter, await read(assignment)] as const),
  );
}

/**
 * Saves what has to be saved, and returns what a request says of it all.
 *
 * @param store needed if there are uploads
 * Throws StoreError.
 */
export async function stageInputs(
  inputs: CallInputs,
  args: JsonObject,
  store: CallArtifacts | undefined,
  signal: AbortSignal,
): Promise<Pick<ToolCall, "args" | "references" | "preloaded">> {
  const references: Entry<ArtifactReference>[] = [];
  for (const [parameter, input] of inputs.artifacts) {
    references.push([parameter, await toReference(input, store, signal)]);
  }
  const { preloaded, lists } = inputs;
  return {
    args: withFilenames(args, [...references, ...preloaded], lists),
    references: byRequestKey(references, lists),
    preloaded: byRequestKey(preloaded, lists),
  };
}

async function toReference(
  input: ArtifactInput,
  store: CallArtifacts | undefined,
  signal: AbortSignal,
): Promise<ArtifactReference> {
  if (input.kind === "reference") return input;
  assert(store, "whoever has uploads opens the store");
  return store.upload(input.path, input.sizeBytes, signal);
}

/** What a parameter of the call stands for. */
type ArtifactInput =
  | { readonly kind: "upload"; readonly path: string; readonly sizeBytes: number }
  | { readonly kind: "reference"; readonly filename: string; readonly version: number };

/**
 * What `--artifact PARAM=TEXT` means: a local file of exactly that name; else, with `:VERSION` at
 * its end, an artifact that the store has already. Throws UsageError.
 */
async function readArtifactInput({ parameter, text }: Assignment): Promise<ArtifactInput> {
  const stats = await stat(text).catch(() => undefined);
  if (stats?.isFile()) return { kind: "upload", path: text, sizeBytes: stats.size };
  const match = /^(?<filename>.+):(?<version>\d{1,9})$/.exec(text);
  const filename = match?.groups?.["filename"];
  if (filename === undefined) throw notAFile("--artifact", parameter, text, stats !== undefined);
  return { kind: "reference", filename, version: Number(match?.groups?.["version"]) };
}

/**
 * The content for `--preload PARAM=FILE`. Throws UsageError when there is no such file or a request
 * cannot hold it.
 */
async function readPreload({ parameter, text }: Assignment): Promise<PreloadedArtifact> {
  const stats = await stat(text).catch(() => undefined);
  if (!stats?.isFile()) throw notAFile("--preload", parameter, text, stats !== undefined);
  const encodedBytes = Math.ceil(stats.size / 3) * 4;
  if (encodedBytes > maxMessageBytes) {
    throw new UsageError(
      `--preload ${parameter}: ${text} has ${stats.size} bytes, ${encodedBytes} of them as base64; a request can have at most ${maxMessageBytes}. Use --artifact.`,
    );
  }
  const filename = basename(text);
  return { filename, version: 0, mimeType: guessMimeType(filename), bytes: await readFile(text) };
}

function notAFile(option: string, parameter: string, text: string, exists: boolean): UsageError {
  const what = exists ? "is not a regular file" : "does not exist";
  return new UsageError(`${option} ${parameter}: ${text} ${what}`);
}

/**
 * Values by the key under which a request has them: `param`, or `param[0]`, `param[1]` for one of
 * the lists.
 */
export function byRequestKey<T>(
  entries: readonly Entry<T>[],
  lists: ReadonlySet<string>,
): ReadonlyMap<string, T> {
  const grouped = Map.groupBy(entries, ([parameter]) => parameter);
  return new Map(
    [...grouped].flatMap(([parameter, group]) =>
      group.map(([, value], index): [string, T] => [
        lists.has(parameter) ? `${parameter}[${index}]` : parameter,
        value,
      ]),
    ),
  );
}

/**
 * The arguments with the filename, or the list of filenames, for every artifact parameter they do
 * not name.
 */
export function withFilenames(
  args: JsonObject,
  files: readonly Entry<{ readonly filename: string }>[],
  lists: ReadonlySet<string>,
): JsonObject {
  const names = [...Map.groupBy(files, ([parameter]) => parameter)]
    .filter(([parameter]) => !Object.hasOwn(args, parameter))
    .map(([parameter, group]): [string, Json] => {
      const filenames = group.map(([, { filename }]) => filename);
      return [parameter, lists.has(parameter) ? filenames : (filenames[0] ?? null)];
    });
  return { ...args, ...Object.fromEntries(names) };
}
