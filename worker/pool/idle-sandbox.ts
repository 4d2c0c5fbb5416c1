/**
 * Sandboxes that have loaded their tool and wait for a call, and templates of such sandboxes.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { PreparedTool } from "../runners/runner.ts";
import type { IdleStartMode, Profile } from "../sandbox/profile.ts";
import type {
  AheadOfCalls,
  Launch,
  ParkedSandbox,
  SandboxRequest,
  Template,
} from "../sandbox/sandbox.ts";
import type { CodeVersions } from "./code/code-watch.ts";
import { hostFingerprint } from "./code/host-fingerprint.ts";
import { type StartParts, prepareRequest } from "./cold-starts.ts";

/** What idle sandboxes are made with. */
export interface IdleParts extends StartParts {
  readonly versions: Pick<CodeVersions, "versionOf">;
}

/** The tool of a pool. */
export interface PooledTool {
  readonly entry: ToolEntry;
  readonly profile: Profile;
  /** Key of the packages of its own; undefined without any. */
  readonly installation: string | undefined;
}

/** The state that a sandbox was made from. Sandboxes of the same origin are interchangeable. */
export interface Origin {
  /** Version of the code; see CodeVersions. */
  readonly version: number;
  /** Its parts of the host; see hostFingerprint. */
  readonly host: string | undefined;
}

/** The same origin. */
export function isSameOrigin(a: Origin, b: Origin): boolean {
  return a.version === b.version && a.host === b.host;
}

/** A sandbox or a template with its preparation. Its owner disposes it. */
interface Made extends AsyncDisposable {
  readonly origin: Origin;
  readonly tool: PreparedTool;
}

/** An idle sandbox. */
export interface IdleSandbox extends Made {
  readonly startMode: IdleStartMode;
  readonly parked: ParkedSandbox;
}

/** A template. Disposing it fulfils after the last sandbox that was made from it. */
export interface PooledTemplate extends Made {
  readonly template: Template;
}

/**
 * Makes a sandbox that loads the tool itself; the caller owns it. Undefined where language or
 * backend lack that. Throws SandboxError, NotGrantedError, the signal's reason.
 */
export async function makePooled(
  parts: IdleParts,
  tool: PooledTool,
  signal: AbortSignal,
): Promise<IdleSandbox | undefined> {
  const made = await make(parts, tool, "pool", (backend, request, launch) =>
    backend.park(request, launch, signal),
  );
  return made && { ...made, startMode: "pool", parked: made.thing };
}

/** Starts a template, otherwise as `makePooled`. */
export async function openTemplate(
  parts: IdleParts,
  tool: PooledTool,
  signal: AbortSignal,
): Promise<PooledTemplate | undefined> {
  const made = await make(parts, tool, "template", (backend, request, launch) =>
    backend.openTemplate(request, launch, signal),
  );
  return made && { ...made, template: made.thing };
}

/** Makes a sandbox from a template; the caller owns it. Throws as Template.park does. */
export async function fork(
  { origin, tool, template }: PooledTemplate,
  signal: AbortSignal,
): Promise<IdleSandbox> {
  const parked = await template.park(signal);
  const dispose = () => parked[Symbol.asyncDispose]();
  return { startMode: "template", origin, tool, parked, [Symbol.asyncDispose]: dispose };
}

async function make<Thing extends AsyncDisposable>(
  parts: IdleParts,
  { entry, profile }: PooledTool,
  startMode: IdleStartMode,
  begin: (backend: AheadOfCalls, request: SandboxRequest, launch: Launch) => Promise<Thing>,
): Promise<(Made & { readonly thing: Thing }) | undefined> {
  const backend = parts.backend.aheadOf?.(profile);
  if (backend === undefined) return undefined;
  // Before anything is read: a later change must not count as present.
  const version = parts.versions.versionOf(entry.runtime);
  const host = await hostFingerprint(parts.hostAccess, entry);
  await using held = new AsyncDisposableStack();
  const { tool, request } = held.use(await prepareRequest(parts, entry, profile));
  const launch = startMode === "pool" ? tool.park : tool.template;
  if (launch === undefined) return undefined;
  const thing = held.use(await begin(backend, request, launch));
  const owned = held.move();
  const dispose = () => owned.disposeAsync();
  return { origin: { version, host }, tool, thing, [Symbol.asyncDispose]: dispose };
}
