/**
 * Artifacts of a call, as callers of the library give them.
 */
import { guessMimeType } from "../../worker/artifacts/mime.ts";
import type { ArtifactReference, PreloadedArtifact } from "../../worker/protocol/invocation.ts";
import type { JsonObject } from "../../worker/support/json/json.ts";
import { byRequestKey, withFilenames } from "../invoke/call-inputs.ts";
import type { ToolCall } from "../messages.ts";

/** An artifact that the worker's store has. */
export interface StoredArtifact {
  /** `user:NAME` is the user's, in whichever session. */
  readonly filename: string;
  /** From 0; the latest unless given. */
  readonly version?: number;
}

/** An artifact whose content goes along in the request. */
export interface SentArtifact {
  readonly filename: string;
  /** Text is sent as UTF-8. */
  readonly content: Uint8Array | string;
  /** Guessed from the filename unless given. */
  readonly mimeType?: string;
}

export type ArtifactInput = StoredArtifact | SentArtifact;

/** By parameter name; an array is for a parameter that takes a list. */
export type ArtifactInputs = Readonly<Record<string, ArtifactInput | readonly ArtifactInput[]>>;

/**
 * What a request says of them. Parameters that `args` does not have get the filename, or the list
 * of filenames.
 */
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
