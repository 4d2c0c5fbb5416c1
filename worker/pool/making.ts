/**
 * Makes sandboxes before their calls, each prepared anew with the tool's present source.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { IdleStartMode, Profile } from "../sandbox/profile.ts";
import type { AheadOfCalls, Launch } from "../sandbox/sandbox.ts";
import type { CodeVersions } from "./code/code-versions.ts";
import { type PreparedRequest, type StartParts, prepareRequest } from "./cold-starts.ts";
import { hostState } from "./code/host-state.ts";
import { SharedTemplate } from "./shared-template.ts";
import { type Origin, Waiting } from "./idle-sandbox.ts";

/** What sandboxes are made with before their calls. */
export interface AheadParts extends StartParts {
  readonly versions: Pick<CodeVersions, "versionOf">;
}

/** Whose they are. */
export interface Owner {
  readonly entry: ToolEntry;
  readonly profile: Profile;
}

/**
 * Makes a sandbox that loads the tool itself; the caller owns it. Undefined where there is no way
 * to. Throws SandboxError, NotGrantedError, the signal's reason.
 */
export async function parkPooled(
  parts: AheadParts,
  owner: Owner,
  signal: AbortSignal,
): Promise<Waiting | undefined> {
  await using held = new AsyncDisposableStack();
  const ready = await prepareAhead(parts, owner, "pool", held);
  if (ready === undefined) return undefined;
  const { ahead, prepared, launch, origin } = ready;
  const parked = held.use(await ahead.park(prepared.request, launch, signal));
  return new Waiting({ kind: "pool", origin, parked, tool: prepared.tool }, held.move());
}

/** Starts a template, as `parkPooled` otherwise; the caller retires it. */
export async function openTemplate(
  parts: AheadParts,
  owner: Owner,
  signal: AbortSignal,
): Promise<SharedTemplate | undefined> {
  await using held = new AsyncDisposableStack();
  const ready = await prepareAhead(parts, owner, "template", held);
  if (ready === undefined) return undefined;
  const { ahead, prepared, launch, origin } = ready;
  const template = held.use(await ahead.openTemplate(prepared.request, launch, signal));
  return new SharedTemplate(origin, template, prepared.tool, held.move());
}

interface Ready {
  readonly ahead: AheadOfCalls;
  readonly prepared: PreparedRequest;
  readonly launch: Launch;
  readonly origin: Origin;
}

/** What is held goes to `held`. Undefined where language or technology do not know the way. */
async function prepareAhead(
  parts: AheadParts,
  { entry, profile }: Owner,
  startMode: IdleStartMode,
  held: AsyncDisposableStack,
): Promise<Ready | undefined> {
  const ahead = parts.backend.aheadOf?.(profile);
  if (ahead === undefined) return undefined;
  // Before anything is read: what changes from here on must not count as present.
  const version = parts.versions.versionOf(entry.runtime);
  const host = await hostState(parts.hostAccess, entry);
  const prepared = held.use(await prepareRequest(parts, entry, profile));
  const launch = startMode === "pool" ? prepared.tool.park : prepared.tool.template;
  if (launch === undefined) return undefined;
  return { ahead, prepared, launch, origin: { version, host } };
}
