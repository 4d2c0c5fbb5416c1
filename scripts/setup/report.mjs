/**
 * How setup talks: lines on stderr, and one error class for "this is missing and here is what to
 * do".
 */

/** Something is missing that setup may not or could not install. The message says what to do. */
export class SetupError extends Error {}

export function say(text) {
  process.stderr.write(`setup: ${text}\n`);
}
