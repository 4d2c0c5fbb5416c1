/**
 * Limits that all peers of the protocol share.
 */

/** Bytes of the largest request or response, as compact UTF-8 JSON: the limit of real agents. */
export const maxMessageBytes = 10_000_000;

/** Seconds for which an agent waits for the answer beyond the tool's time limit. */
export const agentPatienceSeconds = 10;

/** Longest time limit of a request or a manifest entry, in seconds. */
export const maxTimeoutSeconds = 86_400;
