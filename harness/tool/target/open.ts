/**
 * Opens what `tool run` and `tool describe` name, by the options that both have.
 */
import { type Context, UsageError } from "../../context.ts";
import { defaultProfile } from "../../options/defaults.ts";
import { findPrograms } from "../../prerequisites.ts";
import type { DebugOptions } from "../debug/debugged-backend.ts";
import type { ToolsDirs } from "../host-paths.ts";
import {
  type LocalFoundation,
  openManifestFoundation,
  openToolFoundation,
} from "../local-foundation.ts";
import { type Target, findTarget, servedName } from "./target.ts";

/** Options that say which tool is meant, and what its sandbox has. */
export interface TargetFlags {
  readonly class?: boolean;
  readonly tool?: string;
  readonly toolsDir?: string;
  /** The default unless given; a manifest's tool has its own. */
  readonly profile?: string;
  /** Names of our own environment variables that the tool may see. */
  readonly env: readonly string[];
}

/** Finds the target. Throws UsageError, also for options that do not go together with it. */
export async function readTarget(
  name: string,
  { class: isClass = false, tool, toolsDir, profile, env }: TargetFlags,
  { environment }: Context,
): Promise<Target> {
  const target = await findTarget({ target: name, tool, toolsDir, isClass });
  if (target.kind === "manifest" && (profile !== undefined || env.length > 0)) {
    const option = profile === undefined ? "--env" : "--profile";
    throw new UsageError(`${option} is for code; the entries in ${name} say it of their tools`);
  }
  // A worker leaves them out without a word; who names one here expects it to be there.
  const missing = env.find((variable) => environment[variable] === undefined);
  if (missing !== undefined) throw new UsageError(`--env ${missing}: there is no such variable`);
  return target;
}

/** The directories of a target's tools on this host. */
export function dirsOf(target: Target): ToolsDirs {
  if (target.kind === "manifest") return target.layout;
  const { toolsDir } = target;
  return { pythonDir: toolsDir, nodeDir: toolsDir, executableDir: toolsDir };
}

/** How a target is opened. */
export interface OpenTargetOptions extends Pick<TargetFlags, "profile" | "env"> {
  /** A directory that sandboxes can reach; whoever made it removes it afterwards. */
  readonly home: string;
  readonly debug?: DebugOptions | undefined;
  /** Given where calls have another network than that of their tools' entries. */
  readonly network?: "learn";
}

/** Opens it; the caller disposes it. Throws UsageError and CommandError. */
export async function openTarget(
  target: Target,
  { profile = defaultProfile, env, home, debug, network }: OpenTargetOptions,
  context: Context,
): Promise<LocalFoundation> {
  const programs = await findPrograms(context.environment);
  return target.kind === "manifest"
    ? await openManifestFoundation(
        {
          ...{ layout: target.layout, tool: target.tool, programs, home },
          hasOwnNetwork: network !== undefined,
        },
        context,
      )
    : await openToolFoundation({ target, profile, env, programs, home, debug }, context);
}

/**
 * The names by which a worker would serve what the target names: one, or all of a manifest without
 * `--tool`. Throws UsageError for a tool that the manifest does not have.
 */
export function servedNames(target: Target, { foundation }: LocalFoundation): readonly string[] {
  if (target.kind === "code") return [servedName(target)];
  const { tools, unavailable } = foundation.catalog.manifest;
  const names = [...tools.keys(), ...unavailable.keys()];
  const { tool, directory } = target;
  if (tool === undefined) return names;
  if (names.includes(tool)) return [tool];
  throw new UsageError(`the manifest in ${directory} has no tool "${tool}"; ${listed(names)}`);
}

/** `its tools: a, b`. */
export function listed(names: readonly string[]): string {
  return `its tools: ${names.join(", ") || "none"}`;
}
