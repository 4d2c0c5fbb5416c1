/**
 * Options that several commands have, with one meaning and one spelling.
 */
import { Option } from "commander";
import { namespaceProblem } from "../../worker/protocol/topics.ts";
import { type Context, UsageError } from "../context.ts";
import {
  acceptedBrokers,
  defaultPort,
  defaultProfile,
  defaultSessionId,
  defaultTimeoutSeconds,
  defaultUserId,
} from "./defaults.ts";
import {
  collectAssignment,
  parseArguments,
  parseJsonObject,
  parseNamespace,
  parseNonEmpty,
  parsePort,
  parseSeconds,
} from "./option-values.ts";

/** Address of the harness's DevBroker, and of a running one. */
export const loopback = "127.0.0.1";

/** The namespace when neither option nor environment has one. */
export const fallbackNamespace = "harness";

export function argsOption(): Option {
  return new Option(
    "--args <json>",
    "arguments, a JSON object; @FILE takes it from a file, - from standard input",
  )
    .argParser(parseArguments)
    .default({});
}

export function filesOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(collectAssignment).default([], "none");
}

export function configOption(): Option {
  return new Option("--config <json>", "tool configuration, a JSON object")
    .argParser(parseJsonObject)
    .default({});
}

export function timeoutOption(description: string): Option {
  return new Option("--timeout <seconds>", description)
    .argParser(parseSeconds)
    .default(defaultTimeoutSeconds);
}

/** Accepts any name: operators have profiles of their own. */
export function profileOption(description: string): Option {
  return new Option("--profile <name>", description)
    .argParser(parseNonEmpty)
    .default(defaultProfile);
}

export function outOption(): Option {
  return new Option(
    "--out <dir>",
    "write the artifacts that the tool creates into this directory",
  ).argParser(parseNonEmpty);
}

export function jsonOption(): Option {
  return new Option("--json", "print the whole response as one line of JSON");
}

export function userOption(): Option {
  return new Option("--user <id>", "user on whose behalf")
    .argParser(parseNonEmpty)
    .default(defaultUserId);
}

export function sessionOption(): Option {
  return new Option("--session <id>", "session of that user")
    .argParser(parseNonEmpty)
    .default(defaultSessionId);
}

export function namespaceOption({ environment }: Context): Option {
  const fromEnvironment = environment["SAM_NAMESPACE"] || undefined;
  return new Option("--namespace <name>", "namespace, spelled exactly as the worker's")
    .argParser(parseNamespace)
    .default(
      fromEnvironment ?? fallbackNamespace,
      fromEnvironment ? "SAM_NAMESPACE" : fallbackNamespace,
    );
}

/** The namespace of the environment has gone through no parser. Throws UsageError. */
export function checkNamespace(namespace: string): void {
  const problem = namespaceProblem(namespace);
  if (problem !== undefined) throw new UsageError(`SAM_NAMESPACE "${namespace}" ${problem}`);
}

/**
 * Has no parser: what commander says of a value that is refused would repeat it, with the password
 * in it.
 */
export function brokerOption(description: string): Option {
  return new Option("--broker <broker>", `${description}: ${acceptedBrokers}`);
}

export function hostOption(): Option {
  return new Option("--host <address>", "address the own broker listens on")
    .argParser(parseNonEmpty)
    .default(loopback);
}

export function portOption(): Option {
  return new Option("--port <port>", "port the own broker listens on; 0 takes a free one")
    .argParser(parsePort)
    .default(defaultPort);
}
