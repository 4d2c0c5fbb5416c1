/**
 * The W3C trace context of a call (https://www.w3.org/TR/trace-context/): the user property
 * `traceparent`.
 */

/** Version, trace id, parent id and flags; an id of zeros and the version `ff` are invalid. */
const valid = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The user property, of calls and of answers. */
export const traceparentProperty = "traceparent";

/** The trace context among user properties; undefined without a valid one. */
export function readTraceparent(properties: Readonly<Record<string, string>>): string | undefined {
  const value = properties[traceparentProperty];
  return value !== undefined && isTraceparent(value) ? value : undefined;
}

/** The trace of a valid trace context. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/** Whether workers take it for a trace context. */
export function isTraceparent(text: string): boolean {
  return valid.test(text);
}
