/**
 * Secrets that are given by files: `NAME_FILE` names the file that holds the value of `NAME`.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { isAbsolute } from "node:path";
import { type Environment, variableAliases } from "./variable-aliases.ts";
import { factsOf } from "./variable-kinds.ts";
import { variables } from "./variables.ts";

/** More than any secret needs; an endless device is read no further. */
const maxSecretBytes = 64 * 1024;

const suffix = "_FILE";

const shape: Readonly<Record<string, Parameters<typeof factsOf>[0] | undefined>> = variables.shape;

/**
 * Variables whose value a file may hold, by all names. One that has a variable for a file of its
 * own is none of them.
 */
const secretNames = [...Object.keys(shape), ...variableAliases.keys()].filter((name) => {
  const own = variableAliases.get(name) ?? name;
  const schema = shape[own];
  return schema !== undefined && factsOf(schema).isSecret && shape[own + suffix] === undefined;
});

/** The variables that name such files. */
export const secretFileVariables: readonly string[] = secretNames.map((name) => name + suffix);

/**
 * Files and directories that variables name, secrets of the worker among them: its libraries have
 * variables of their own, such as `AWS_WEB_IDENTITY_TOKEN_FILE`.
 */
export function ownPaths(environment: Environment): readonly string[] {
  return Object.values(environment).flatMap((path = "") => (isAbsolute(path) ? [path] : []));
}

/**
 * An environment with its secrets, and what kept some from being read: a line each, never with a
 * content.
 */
interface WithSecrets {
  readonly environment: Environment;
  readonly problems: readonly string[];
}

/**
 * Reads the files that the environment names, now and not again, and puts their contents in the
 * place of their names. A newline at the end does not count.
 *
 * @param names of the secrets; those of the worker unless given
 */
export function readSecretFiles(
  environment: Environment,
  names: readonly string[] = secretNames,
): WithSecrets {
  const read: Record<string, string | undefined> = { ...environment };
  const problems: string[] = [];
  for (const name of names) {
    const path = environment[name + suffix];
    if (path === undefined || path === "") continue;
    read[name + suffix] = undefined;
    if (environment[name]) problems.push(`${name}, ${name}${suffix}: set one of them`);
    try {
      read[name] = readSecret(path);
    } catch (error) {
      problems.push(`${name}${suffix}: ${JSON.stringify(path)} ${reasonOf(error)}`);
    }
  }
  return { environment: read, problems };
}

/** Its message goes after the path. */
class UnusableSecretError extends Error {}

function readSecret(path: string): string {
  const bytes = readBounded(path);
  if (bytes.byteLength > maxSecretBytes) {
    throw new UnusableSecretError(`holds more than ${maxSecretBytes} bytes`);
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UnusableSecretError("is not UTF-8");
  }
  const value = text.replace(/\r?\n$/, "");
  if (value === "") throw new UnusableSecretError("is empty");
  return value;
}

/** The content of a file, or a byte more than is accepted. */
function readBounded(path: string): Uint8Array {
  const descriptor = openSync(path, "r");
  try {
    const buffer = new Uint8Array(maxSecretBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof UnusableSecretError) return error.message;
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
  return `cannot be read: ${code}`;
}
