/**
 * Resolves the names of a request: its tool, and its profile.
 */
import type { CallerKind, ToolEntry } from "../../manifest/manifest.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import type { Network } from "../../protocol/network-rules.ts";
import { chooseProfile } from "../../sandbox/choose-profile.ts";
import { type Profile, type Profiles, withHostNetwork } from "../../sandbox/profile.ts";

/** Tools and profiles in force. */
export interface ResolveParts {
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  readonly profiles: Profiles;
  readonly defaultProfile: string;
  /** What the network `host` stands for. */
  readonly hostNetwork: Network;
}

/**
 * Throws InvocationError `TOOL_NOT_AVAILABLE`, which agents retry. Throws `NOT_REPEATED` for a
 * redelivered call: the entry that said whether it may run twice is gone.
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

/** Throws InvocationError `INVALID_REQUEST` for a caller of a kind that the tool does not allow. */
export function requireCaller(
  { name, catalog }: Pick<ToolEntry, "name" | "catalog">,
  kind: CallerKind,
): void {
  if (catalog.allowedCallers.has(kind)) return;
  const callers = kind === "direct" ? "by agents" : "by other tools";
  throw new InvocationError("INVALID_REQUEST", `Tool '${name}' may not be called ${callers}`);
}

interface Resolved {
  /** What decides, beside the tool. */
  readonly by: readonly unknown[];
  readonly profile: Profile;
}

/** The last of each tool: most calls of a tool have the same, whose keys are then known. */
const lastResolved = new WeakMap<ToolEntry, Resolved>();

/** Throws InvocationError `INVALID_REQUEST` for a request that names an unknown profile. */
export function resolveProfile(
  parts: ResolveParts,
  tool: ToolEntry,
  { requestedProfile: requested }: Pick<Invocation, "requestedProfile">,
): Profile {
  const by = [parts.profiles, parts.defaultProfile, parts.hostNetwork, requested];
  const last = lastResolved.get(tool);
  if (last?.by.every((each, index) => each === by[index]) === true) return last.profile;
  const profile = computeProfile(parts, tool, requested);
  lastResolved.set(tool, { by, profile });
  return profile;
}

function computeProfile(
  parts: ResolveParts,
  tool: ToolEntry,
  requested: string | undefined,
): Profile {
  if (requested !== undefined && !parts.profiles.has(requested)) {
    throw new InvocationError(
      "INVALID_REQUEST",
      `Invalid request: params.sandbox_profile: unknown profile, expected one of ${[...parts.profiles.keys()].join(", ")}`,
    );
  }
  const chosen = chooseProfile({
    manifest: tool.profile === undefined ? undefined : requireProfile(parts, tool.profile),
    overrides: tool,
    requested: requested === undefined ? undefined : parts.profiles.get(requested),
    fallback: requireProfile(parts, parts.defaultProfile),
  });
  return withHostNetwork(chosen, parts.hostNetwork);
}

/** Manifest and configuration were checked on loading, so that the profile exists. */
function requireProfile({ profiles }: ResolveParts, name: string): Profile {
  const profile = profiles.get(name);
  if (profile === undefined) throw new Error(`profile "${name}" does not exist`);
  return profile;
}

/** @param publicReason publishable: names no path and no secret of the host */
export function notAvailable(
  toolName: string,
  publicReason?: string,
  options?: { readonly cause: unknown; readonly op?: InvocationError["op"] },
): InvocationError {
  const message = `Tool '${toolName}' is not available on this worker`;
  const withReason = publicReason === undefined ? message : `${message}: ${publicReason}`;
  return new InvocationError("TOOL_NOT_AVAILABLE", withReason, options);
}

function mayHaveRun(toolName: string): InvocationError {
  const message = `The call was delivered again, and tool '${toolName}', which is not available on this worker any more, may have run for it already`;
  return new InvocationError("NOT_REPEATED", message);
}
