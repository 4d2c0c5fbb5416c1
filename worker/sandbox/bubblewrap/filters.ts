/**
 * The system-call filter of each sandbox, by its profile and its command.
 */
import type { Profile } from "../profile.ts";
import { type Launch, SandboxError } from "../sandbox.ts";
import type { HostFacts } from "./probe/probe.ts";
import { isFilteredArch, seccompProgram } from "./seccomp/seccomp.ts";

type HostFilter = Pick<HostFacts, "seccomp">;
type FilterProfile = Pick<Profile, "name" | "systemCalls">;
type FilterLaunch = Pick<Launch, "addsFilter">;

/**
 * The filter of what runs a tool; undefined where the host has none. Throws SandboxError where a
 * strict one cannot be put on.
 */
export function toolFilter(
  { seccomp }: HostFilter,
  { name, systemCalls }: FilterProfile,
  { addsFilter = false }: FilterLaunch = {},
): Uint8Array | undefined {
  if (systemCalls === "usual" && !addsFilter) return seccomp;
  if (seccomp === undefined || !isFilteredArch(process.arch))
    throw new SandboxError(`no system-call filter here, which the profile ${name} requires`);
  return seccompProgram(process.arch, { systemCalls, addsFilter });
}

/** The filter of a template, whose children put on {@link toolFilter} besides. */
export function templateFilter(
  { systemCalls }: FilterProfile,
  { addsFilter = false }: FilterLaunch,
): Uint8Array | undefined {
  if (!isFilteredArch(process.arch)) return undefined;
  return seccompProgram(process.arch, { use: "template", systemCalls, addsFilter });
}
