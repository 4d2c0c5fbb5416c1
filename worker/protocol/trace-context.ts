/**
 * The W3C trace context of a call (https://www.w3.org/TR/trace-context-2/): the user properties
 * `traceparent` and `tracestate`, what vendors of tracing add to it.
 */

/** Version, trace id, parent id and flags; an id of zeros and the version `ff` are invalid. */
const validTraceparent =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** `key=value`: the value is printable ASCII without comma and equals sign; its end is no space. */
const validMember = /^([a-z0-9][a-z0-9_\-*/@]{0,255})=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;

/** User properties, of calls and of answers. */
export const traceparentProperty = "traceparent";
export const tracestateProperty = "tracestate";

/** Longest `tracestate` in characters, all of them ASCII. */
export const maxTracestateLength = 512;

/** Most members of a `tracestate`. */
export const maxTracestateMembers = 32;

/** The trace context among user properties; undefined without a valid one. */
export function readTraceparent(properties: Readonly<Record<string, string>>): string | undefined {
  const value = properties[traceparentProperty];
  return value !== undefined && isTraceparent(value) ? value : undefined;
}

/** Undefined without a valid one within the limits, and without a valid `traceparent`. */
export function readTracestate(properties: Readonly<Record<string, string>>): string | undefined {
  const value = properties[tracestateProperty];
  if (value === undefined || readTraceparent(properties) === undefined) return undefined;
  return isTracestate(value) ? value : undefined;
}

/** The trace of a valid trace context. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/** Whether workers take it for a trace context. */
export function isTraceparent(text: string): boolean {
  return validTraceparent.test(text);
}

function isTracestate(text: string): boolean {
  if (text.length > maxTracestateLength) return false;
  const members = text
    .split(",")
    .map((part) => part.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((part) => part !== "");
  const keys = new Set(members.map((part) => validMember.exec(part)?.[1]));
  return (
    members.length > 0 &&
    members.length <= maxTracestateMembers &&
    keys.size === members.length &&
    !keys.has(undefined)
  );
}
