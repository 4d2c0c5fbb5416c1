/**
 * The limits of messages and results, for docs/protocol.md.
 */
import { maxNameBytes } from "../../worker/artifacts/scope.ts";
import { maxErrorLength, maxStderrLength } from "../../worker/invocation/steps/result.ts";
import { statusBurst, statusesPerSecond } from "../../worker/invocation/steps/status-relay.ts";
import { maxMessageBytes, maxTimeoutSeconds } from "../../worker/protocol/limits.ts";
import { maxArtifacts, maxNameLength } from "../../worker/protocol/messages/request.ts";
import {
  maxNamespaceBytes,
  maxToolNameBytes,
  maxTopicBytes,
} from "../../worker/protocol/topics.ts";
import { maxOutputBytes } from "../../worker/sandbox/subprocess.ts";
import { maxLineBytes } from "../../worker/sandbox/work/status-lines.ts";
import { defaultJsonLimits } from "../../worker/support/json/json.ts";
import { thousands } from "./numbers.ts";

const { depth, values } = defaultJsonLimits;

/** Limits of messages, and the effect of exceeding each. */
export const protocolLimits: readonly (readonly [string, string, string])[] = [
  ["request, response", `${thousands(maxMessageBytes)} bytes each`, "`RESOURCE_EXHAUSTED`"],
  [
    "request, result: nesting and number of values",
    `${depth} levels, ${thousands(values)} values`,
    "`INVALID_REQUEST`, `INTERNAL_ERROR`",
  ],
  [
    "ids and names in a request",
    `1 to ${thousands(maxNameLength)} characters`,
    "`INVALID_REQUEST`",
  ],
  [
    "artifacts of a request",
    `${thousands(maxArtifacts)} references, ${thousands(maxArtifacts)} preloaded`,
    "`INVALID_REQUEST`",
  ],
  ["`timeout_seconds`", thousands(maxTimeoutSeconds), "`INVALID_REQUEST`"],
  [
    "namespace, tool name, topic",
    `${maxNamespaceBytes}, ${maxToolNameBytes}, ${maxTopicBytes} bytes`,
    "refused at the start; a topic in a message is not used",
  ],
  ["filename of an artifact", `${maxNameBytes} bytes`, "`ARTIFACT_ERROR`"],
  ["result of a tool", `${thousands(maxMessageBytes)} bytes`, "`RESOURCE_EXHAUSTED`"],
  [
    "input artifacts",
    "`ARTIFACT_MAX_BYTES` each, `ARTIFACT_CALL_MAX_BYTES` together",
    "`ARTIFACT_ERROR`",
  ],
  [
    "output artifacts",
    "`ARTIFACT_MAX_OUTPUTS`; the same sizes, and each as large as the profile's largest file, together its disk",
    "`ARTIFACT_ERROR`",
  ],
  [
    "a status",
    `${thousands(maxLineBytes)} bytes as a line of JSON`,
    "the tool runners shorten it; a longer line of another writer is dropped",
  ],
  [
    "statuses of a call",
    `${statusBurst} immediately, then ${statusesPerSecond} a second`,
    "the newest replaces the one that waits",
  ],
  [
    "message of an error",
    `${thousands(maxErrorLength)} characters, of standard error ${maxStderrLength}`,
    "shortened",
  ],
  [
    "standard output, standard error",
    `${maxOutputBytes / 1024} KiB each`,
    "the end is kept, the rest read and dropped",
  ],
];
