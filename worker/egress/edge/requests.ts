/**
 * Which requests of HTTP the rules of a host allow.
 */
import type { Credential } from "../../protocol/credential.ts";
import { type RequestRule, isMethod } from "../../protocol/request-rules.ts";

/** An allowed request, with its credential. */
export interface AllowedRequest {
  readonly credential: Credential | undefined;
}

/** Headers from which some hosts take another method than that of the request. */
const methodHeaders = ["x-http-method", "x-http-method-override", "x-method-override"];

/** The same of its path. */
const pathHeaders = ["x-original-url", "x-rewrite-url"];

/** A received request. */
export interface GivenRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Whether it came by TLS. */
  readonly isSecure: boolean;
  readonly headerNames: readonly string[];
}

/**
 * A request needs a rule of each list, and one of the methods that rules can name: the answer to
 * TRACE repeats the request, with its credential. Its own credential is that of the first rule that
 * matches and has one. Undefined for a request that is not allowed.
 */
export function judgeRequest(
  lists: readonly (readonly RequestRule[])[],
  request: GivenRequest,
): AllowedRequest | undefined {
  if (!/^\/[\x21-\x7e]*$/.test(request.target) || request.target.includes("#")) return undefined;
  if (!isMethod(request.method)) return undefined;
  const path = plainPathOf(request.target);
  const matching = lists.map((rules) => rules.filter((rule) => matches(rule, request, path)));
  if (matching.some((rules) => rules.length === 0)) return undefined;
  const credentials = matching.flat().map(({ credential }) => credential);
  return { credential: credentials.find((credential) => credential !== undefined) };
}

function matches(
  { methods, paths, credential }: RequestRule,
  { method, isSecure, headerNames }: GivenRequest,
  path: string | undefined,
): boolean {
  // A credential is never sent without TLS.
  if (credential !== undefined && !isSecure) return false;
  if (methods?.includes(method) === false) return false;
  if (methods !== undefined && hasOne(methodHeaders, headerNames)) return false;
  if (paths === undefined) return true;
  if (hasOne(pathHeaders, headerNames)) return false;
  return path !== undefined && paths.some((pattern) => matchesPath(pattern, path));
}

/** Many servers read an underscore in a name as a hyphen. */
function hasOne(names: readonly string[], given: readonly string[]): boolean {
  return given.some((name) => names.includes(name.toLowerCase().replaceAll("_", "-")));
}

function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith("/*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

/**
 * The path after one percent-decoding; undefined where servers differ in what it means: with levels
 * `.` and `..` (also before `;`), with a backslash, with a slash, a percent sign or a control
 * character that is encoded, or not in UTF-8.
 */
export function plainPathOf(target: string): string | undefined {
  const [encoded = ""] = target.split("?");
  if (encoded.includes("\\") || /%(?:2f|5c|25)/i.test(encoded)) return undefined;
  const path = decoded(encoded);
  if (path === undefined || /\p{Cc}/u.test(path)) return undefined;
  return path.split("/").some((level) => /^\.{1,2}(?:;|$)/.test(level)) ? undefined : path;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
