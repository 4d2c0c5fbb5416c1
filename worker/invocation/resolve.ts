/**
 * What a request names, found: its tool, and the profile that it runs under.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { Invocation } from "../protocol/invocation.ts";
import { type Profile, type Profiles, chooseProfileName } from "../sandbox/profile.ts";

/** Where they are looked for. */
export interface ResolveParts {
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  readonly profiles: Profiles;
  readonly defaultProfile: string;
}

/** The tool of that name. Throws InvocationError `TOOL_NOT_AVAILABLE`. */
export function resolveTool(parts: ResolveParts, toolName: string): ToolEntry {
  const tool = parts.resolve(toolName);
  if (tool !== undefined) return tool;
  throw new InvocationError(
    "TOOL_NOT_AVAILABLE",
    `Tool '${toolName}' is not available on this worker`,
  );
}

/** The profile of a call. Throws InvocationError `INVALID_REQUEST` for a request that names one that does not exist. */
export function resolveProfile(
  parts: ResolveParts,
  tool: ToolEntry,
  invocation: Invocation,
): Profile {
  const requested = invocation.requestedProfile;
  if (requested !== undefined && !parts.profiles.has(requested)) {
    throw new InvocationError(
      "INVALID_REQUEST",
      `Invalid request: params.sandbox_profile: unknown profile, expected one of ${[...parts.profiles.keys()].join(", ")}`,
    );
  }
  const name = chooseProfileName({
    manifest: tool.profile,
    requested,
    fallback: parts.defaultProfile,
  });
  const profile = parts.profiles.get(name);
  if (profile === undefined)
    throw new Error(`profile "${name}" of tool "${tool.name}" does not exist`);
  return profile;
}
