/**
 * Limits of executions over a connection.
 */

/** Bytes of a request, its code included. */
export const maxRequestBytes = 1024 * 1024;
/** Bytes of an answer. */
export const maxAnswerBytes = 32 * 1024 * 1024;

/**
 * Bytes of a gateway's channel that a peer sends before the other has taken them. A message counts
 * `messageBytes` more than it has, so that many small ones are bounded, too.
 */
export const windowBytes = 1024 * 1024;
export const messageBytes = 256;
/** Bytes of a message of the channel. */
export const maxChunkBytes = 64 * 1024;
/** Other messages that a peer sends ahead. */
export const maxUnreadMessages = 2;

/** Executions at once. Others wait. */
export const defaultMaxExecutions = 32;
/** Connections at once, those of waiting executions included. */
export const defaultMaxConnections = 256;
/** Connections at once that are not authenticated yet. Further ones are cut. */
export const maxHandshakes = 64;
/** Handshakes at once of one client. Others wait. */
export const maxClientHandshakes = 16;

/** Milliseconds for a handshake, and for the first message. */
export const handshakeMs = 10_000;
/** Milliseconds between two pings. */
export const defaultPingIntervalMs = 5_000;
/** Pings in a row after which a peer that has sent nothing is lost: 20 seconds by default. */
export const maxUnansweredPings = 3;
/** Milliseconds for a peer to take the answer. */
export const answerMs = 60_000;
/** Milliseconds for a peer to answer a closing handshake. */
export const closeMs = 2_000;
/** Milliseconds that an aborted execution may take to end on the far side. */
export const endingMs = 10_000;
/** Milliseconds that the far side may take longer for its own time limit. */
export const timeoutGraceMs = 1_000;
/** Milliseconds by which a timer can end before its time is over. */
export const timerSlackMs = 2;
