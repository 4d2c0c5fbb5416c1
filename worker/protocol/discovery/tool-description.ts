/**
 * What a tool says of itself: to agents, and to the worker that checks its arguments.
 */
import type { JsonObject } from "../../support/json/json.ts";

/** What is known of a parameter that takes the filename of an artifact. */
export interface ArtifactParameter {
  /** Whether it takes a list of filenames. */
  readonly isList: boolean;
  readonly isOptional: boolean;
}

/** A tool in words and schemas, which are of JSON Schema 2020-12. */
export interface ToolDescription {
  /** What it does, for the agent that may call it. */
  readonly description: string | undefined;
  /** Schema of the arguments, of type object; undefined where it is not known. */
  readonly parameters: JsonObject | undefined;
  /** Schema of a result; undefined where it is not known. */
  readonly result: JsonObject | undefined;
  /** Schema of the tool's configuration; undefined where it takes none, or none is known. */
  readonly config: JsonObject | undefined;
  /** The parameters that take artifacts, by name. */
  readonly artifactParameters: ReadonlyMap<string, ArtifactParameter>;
}

/** What a call of a tool is held to. */
export interface CallDescription extends Pick<ToolDescription, "parameters" | "config"> {
  readonly artifactParameters: ReadonlyMap<string, CallArtifactParameter>;
}

/** An artifact parameter of a call. */
export interface CallArtifactParameter extends ArtifactParameter {
  /** Whether a text that names no artifact goes to the tool as it came. Default: false. */
  readonly mayBeText?: boolean;
}
