/**
 * The sizes that every peer of this wire agrees on.
 */

/**
 * Largest request, and largest response, in bytes of compact UTF-8 JSON: what real agents publish
 * at most.
 */
export const maxMessageBytes = 10_000_000;

/** Seconds an agent waits beyond the tool's own time limit before it gives up on an answer. */
export const agentPatienceSeconds = 10;

/** Longest time limit that a request or a manifest may set. */
export const maxTimeoutSeconds = 86_400;
