/**
 * Artifact inputs of the client library's calls.
 */
import { guessMimeType } from "../../worker/artifacts/mime.ts";
import type { ArtifactReference, PreloadedArtifact } from "../../worker/protocol/invocation.ts";
import type { JsonObject } from "../../worker/support/json/json.ts";
import { byRequestKey, withFilenames } from "../invoke/call-inputs.ts";
import type { ToolCall } from "../messages.ts";

/** An artifact in the worker's store. */
export interface StoredArtifact {
  /** `user:NAME` for the user's artifacts of all sessions. */
  readonly filename: string;
  /** From 0; the latest by default. */
  readonly version?: number;
}

/** An artifact with its content in the request. */
export interface SentArtifact {
  readonly filename: string;
  /** Text is sent as UTF-8. */
  readonly content: Uint8Array | string;
  /** By default guessed from the filename. */
  readonly mimeType?: string;
}

export type ArtifactInput = StoredArtifact | SentArtifact;

/** Artifacts by parameter name; arrays for list parameters. */
export type ArtifactInputs = Readonly<Record<string, ArtifactInput | readonly ArtifactInput[]>>;

/** Fields of the request. Parameters without an argument get the filename or filenames. */
export function stageArtifacts(
  inputs: ArtifactInputs,
  args: JsonObject,
): Required<Pick<ToolCall, "args" | "references" | "preloaded">> {
  const lists = new Set(Object.keys(inputs).filter((parameter) => isList(inputs[parameter])));
  const all = Object.entries(inputs).flatMap(([parameter, given]) =>
    (isList(given) ? given : [given]).map((input) => [parameter, input] as const),
  );
  // Keys count within a list, whose members can be of both sorts.
  const keyed = [...byRequestKey(all, lists)];
  return {
    args: withFilenames(args, all, lists),
    references: new Map(
      keyed.flatMap(([key, input]) => (isSent(input) ? [] : [[key, refer(input)]])),
    ),
    preloaded: new Map(
      keyed.flatMap(([key, input]) => (isSent(input) ? [[key, send(input)]] : [])),
    ),
  };
}

function isList(
  given: ArtifactInput | readonly ArtifactInput[] | undefined,
): given is readonly ArtifactInput[] {
  return Array.isArray(given);
}

function isSent(input: ArtifactInput): input is SentArtifact {
  return "content" in input;
}

function refer({ filename, version }: StoredArtifact): ArtifactReference {
  return { filename, version };
}

function send({ filename, content, mimeType }: SentArtifact): PreloadedArtifact {
  return {
    filename,
    version: 0,
    mimeType: mimeType ?? guessMimeType(filename),
    bytes: typeof content === "string" ? Buffer.from(content) : content,
  };
}
