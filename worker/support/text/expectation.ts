/**
 * What a check of a file says: what is accepted and what was found.
 */

/** Characters of a wrong text that a message repeats. */
const maxQuotedLength = 60;

/**
 * Names a value in a message without giving away what may be secret: a URL can carry a password.
 */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case "string":
      return value.includes("://") ? "a URL" : quote(value);
    case "object":
      return value === null ? "nothing" : Array.isArray(value) ? "a list" : "a map";
    case "undefined":
      return "nothing";
    default:
      return String(value);
  }
}

function quote(text: string): string {
  const isCut = text.length > maxQuotedLength;
  return `${JSON.stringify(text.slice(0, maxQuotedLength))}${isCut ? "…" : ""}`;
}

/** The message of every check. */
export function expectation(what: string, value: unknown): string {
  if (value === undefined) return `required: ${what}`;
  return `expected ${what}, found ${describeValue(value)}`;
}

/** What a schema's check is told: the value it refused, or that there are keys it does not know. */
interface Refused {
  readonly input?: unknown;
  readonly code?: string | undefined;
}

/** The message of a schema's check, as the option that schemas take. */
export function accepts(what: string): { error: (refused: Refused) => string } {
  return { error: ({ input }) => expectation(what, input) };
}

/**
 * For a check that comes after others of the same value: it is made when these found nothing. They
 * need not abort then, which would also keep checks of whatever the value is a part of from being
 * made, and so from being told at once.
 */
export const whenFineSoFar = {
  when: ({ issues }: { readonly issues: readonly unknown[] }): boolean => issues.length === 0,
} as const;

/** A number as people write it in text. */
const plainNumber = /^-?\d+(?:\.\d+)?$/;

/**
 * The number that a text in quotes holds; any other value as it is. For fields whose quotes nobody
 * means.
 */
export function unquoted(value: unknown): unknown {
  return typeof value === "string" && plainNumber.test(value) ? Number(value) : value;
}

/** The message for a map that has no other keys than `keys`. */
export function acceptsKeys(
  what: string,
  keys: readonly string[],
): { error: (refused: Refused) => string } {
  return {
    error: ({ code, input }) =>
      code === "unrecognized_keys"
        ? `unknown key; the keys are ${keys.join(", ")}`
        : expectation(what, input),
  };
}
