/**
 * What the artifact commands have in common: whose artifacts, in which store.
 */
import { defaultAgentName } from "../agent.ts";
import { SharedArtifacts, type StoreUse, usable } from "../artifacts.ts";
import type { Context } from "../context.ts";

export { usable };

/** The command line. */
export interface ArtifactOptions {
  readonly user: string;
  readonly session: string;
  readonly namespace: string;
  readonly json?: boolean;
}

/** The caller's artifacts. The command disposes them. Rejects with UsageError or StoreError. */
export function openArtifacts(
  { user, session, namespace }: ArtifactOptions,
  use: StoreUse,
  { environment, signal }: Context,
): Promise<SharedArtifacts> {
  const caller = { appName: defaultAgentName, userId: user, sessionId: session };
  const purpose = "harness artifact";
  return SharedArtifacts.open({ environment, namespace, caller, purpose, use }, signal);
}
