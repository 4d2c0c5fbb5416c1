/**
 * Messages of file checks: the accepted values, and the value found.
 */

/** Characters of a wrong text in a message. */
const maxQuotedLength = 60;

/** Describes a value in a message without its secrets, such as a URL's password. */
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

/** The message of a check. */
export function expectation(what: string, value: unknown): string {
  if (value === undefined) return `required: ${what}`;
  return `expected ${what}, found ${describeValue(value)}`;
}

/** Issue of a schema: a refused value, or unknown keys. */
interface Refused {
  readonly input?: unknown;
  readonly code?: string | undefined;
}

/** The message of a check, as an option of schemas. */
export function accepts(what: string): { error: (refused: Refused) => string } {
  return { error: ({ input }) => expectation(what, input) };
}

/**
 * Runs a check only when earlier checks of the value found no issue. Without `abort` in these, the
 * schema still checks the enclosing value.
 */
export const whenFineSoFar = {
  when: ({ issues }: { readonly issues: readonly unknown[] }): boolean => issues.length === 0,
} as const;

/** A decimal number without an exponent. */
const plainNumber = /^-?\d+(?:\.\d+)?$/;

/** Converts a quoted number; returns other values unchanged. */
export function unquoted(value: unknown): unknown {
  return typeof value === "string" && plainNumber.test(value) ? Number(value) : value;
}

/** The message for a map with keys outside of `keys`. */
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
