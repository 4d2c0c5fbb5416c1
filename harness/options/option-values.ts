/**
 * Parses values of command line options; errors name the accepted values.
 */
import { readFileSync } from "node:fs";
import { InvalidArgumentError } from "commander";
import type { ArtifactReference } from "../../worker/protocol/invocation.ts";
import { maxTimeoutSeconds } from "../../worker/protocol/limits.ts";
import { namespaceProblem, toolNameProblem } from "../../worker/protocol/topics.ts";
import { isTraceparent } from "../../worker/protocol/trace-context.ts";
import {
  JsonError,
  type JsonObject,
  isJsonObject,
  parseJson,
} from "../../worker/support/json/json.ts";

/** `PARAM=TEXT`, or `PARAM[]=TEXT` for an element of a list. */
export interface Assignment {
  readonly parameter: string;
  readonly isElement: boolean;
  readonly text: string;
}

export function parsePort(text: string): number {
  return wholeNumber(text, 0, 65_535, "a port, 0 to 65535");
}

export function parseSeconds(text: string): number {
  return wholeNumber(text, 1, maxTimeoutSeconds, `whole seconds, 1 to ${maxTimeoutSeconds}`);
}

/** Arguments: JSON, `@FILE` that has it, or `-` for standard input. */
export function parseArguments(text: string): JsonObject {
  if (text === "-") return parseJsonObject(readText(0, "standard input"));
  return parseJsonObject(text.startsWith("@") ? readText(text.slice(1), text.slice(1)) : text);
}

function readText(file: string | number, name: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new InvalidArgumentError(`${name} cannot be read: ${code ?? String(error)}.`);
  }
}

export function parseJsonObject(text: string): JsonObject {
  const document = decode(text);
  if (!isJsonObject(document)) throw new InvalidArgumentError("Accepted: a JSON object.");
  return document;
}

function decode(text: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new InvalidArgumentError(`Accepted: a JSON object; this is ${error.message}.`);
  }
}

/** `NAME@VERSION`, or `NAME` for the latest version. */
export function parseArtifactReference(text: string): ArtifactReference {
  const match = /^(?<filename>.+)@(?<version>\d{1,15})$/s.exec(text);
  const filename = parseNonEmpty(match?.groups?.["filename"] ?? text);
  const version = match?.groups?.["version"];
  return { filename, version: version === undefined ? undefined : Number(version) };
}

/** Collects the assignments of an option that can be repeated. */
export function collectAssignment(
  text: string,
  previous: readonly Assignment[],
): readonly Assignment[] {
  const at = text.indexOf("=");
  const name = text.slice(0, Math.max(at, 0));
  const isElement = name.endsWith("[]");
  const parameter = isElement ? name.slice(0, -2) : name;
  const value = text.slice(at + 1);
  if (parameter === "" || parameter.includes("[") || value === "") {
    throw new InvalidArgumentError(
      "Accepted: PARAM=FILE, or PARAM[]=FILE for a list; repeat the option for more.",
    );
  }
  return [...previous, { parameter, isElement, text: value }];
}

export function parseToolName(text: string): string {
  return refuse(text, "The tool name", toolNameProblem(text));
}

/** As a manifest accepts it: also its beginning matters. */
export function parseNewToolName(text: string): string {
  const isOdd = /^[^A-Za-z0-9]/.test(text);
  return refuse(
    parseToolName(text),
    "The tool name",
    isOdd ? "begins with neither letter nor digit" : undefined,
  );
}

export function parseNamespace(text: string): string {
  return refuse(text, "The namespace", namespaceProblem(text));
}

/** A W3C trace context, as workers accept it. */
export function parseTraceparent(text: string): string {
  const problem = isTraceparent(text)
    ? undefined
    : "is no W3C trace context: 00-TRACE-PARENT-FLAGS";
  return refuse(text, "It", problem);
}

export function parseNonEmpty(text: string): string {
  return refuse(text, "It", text === "" ? "is empty" : undefined);
}

function refuse(text: string, subject: string, problem: string | undefined): string {
  if (problem !== undefined) throw new InvalidArgumentError(`${subject} ${problem}.`);
  return text;
}

function wholeNumber(text: string, min: number, max: number, accepted: string): number {
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text) || value < min || value > max) {
    throw new InvalidArgumentError(`Accepted: ${accepted}.`);
  }
  return value;
}
