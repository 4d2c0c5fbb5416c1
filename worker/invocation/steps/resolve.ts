/**
 * What a request names, found: its tool, and the profile that it runs under.
 */
import type { ToolEntry } from "../../manifest/manifest.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import { chooseProfile } from "../../sandbox/choose-profile.ts";
import type { Profile, Profiles } from "../../sandbox/profile.ts";

/** Where they are looked for. */
export interface ResolveParts {
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  readonly profiles: Profiles;
  readonly defaultProfile: string;
}

/**
 * The tool of that name. Throws InvocationError `TOOL_NOT_AVAILABLE`, which has agents call again;
 * `NOT_REPEATED` for a call that was delivered before: it may have run, and whether it may do so
 * twice is not known of a tool that is not served any more.
 */
export function resolveTool(
  parts: ResolveParts,
  toolName: string,
  isRedelivered: boolean,
): ToolEntry {
  const tool = parts.resolve(toolName);
  if (tool !== undefined) return tool;
  throw isRedelivered ? mayHaveRun(toolName) : notAvailable(toolName);
}

/**
 * The profile of a call. Throws InvocationError `INVALID_REQUEST` for a request that names one that
 * does not exist.
 */
export function resolveProfile(
  parts: ResolveParts,
  tool: ToolEntry,
  { requestedProfile: requested }: Pick<Invocation, "requestedProfile">,
): Profile {
  if (requested !== undefined && !parts.profiles.has(requested)) {
    throw new InvocationError(
      "INVALID_REQUEST",
      `Invalid request: params.sandbox_profile: unknown profile, expected one of ${[...parts.profiles.keys()].join(", ")}`,
    );
  }
  return chooseProfile({
    manifest: tool.profile === undefined ? undefined : requireProfile(parts, tool.profile),
    overrides: tool,
    requested: requested === undefined ? undefined : parts.profiles.get(requested),
    fallback: requireProfile(parts, parts.defaultProfile),
  });
}

/**
 * A profile that the manifest or the configuration names; both were checked when they were read.
 */
function requireProfile({ profiles }: ResolveParts, name: string): Profile {
  const profile = profiles.get(name);
  if (profile === undefined) throw new Error(`profile "${name}" does not exist`);
  return profile;
}

/**
 * The answer to a call for a tool that is not served here.
 *
 * @param publicReason why, in words that may be published
 */
export function notAvailable(
  toolName: string,
  publicReason?: string,
  options?: { readonly cause: unknown },
): InvocationError {
  const message = `Tool '${toolName}' is not available on this worker`;
  const withReason = publicReason === undefined ? message : `${message}: ${publicReason}`;
  return new InvocationError("TOOL_NOT_AVAILABLE", withReason, options);
}

function mayHaveRun(toolName: string): InvocationError {
  const message = `The call was delivered again, and tool '${toolName}', which is not available on this worker any more, may have run for it already`;
  return new InvocationError("NOT_REPEATED", message);
}
