/**
 * Opens the manifest and the toolsets beside it, of a worker or of a preparation.
 */
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { type CatalogOptions, type ToolCatalog, openCatalog } from "../manifest/catalog.ts";
import { Toolsets } from "../manifest/toolsets/toolsets.ts";
import type { Profiles } from "../sandbox/profile.ts";
import { isolates } from "../sandbox/registry.ts";
import { newId } from "../support/ids.ts";
import type { Host } from "./host.ts";

/** What {@link openManifest} uses beside the configuration. */
interface ManifestParts extends Pick<
  CatalogOptions,
  "runsExecutables" | "admit" | "admitChanged" | "onServed"
> {
  readonly profiles: Profiles;
  /** Undefined without toolsets. */
  readonly toolsets: Toolsets | undefined;
}

/** Opens the catalog of the manifest; the caller owns it. Rejects as `openCatalog` does. */
export function openManifest(
  config: Config,
  { log, clock }: Host,
  { profiles, toolsets, ...admission }: ManifestParts,
  signal: AbortSignal,
): Promise<ToolCatalog> {
  return openCatalog({
    ...admission,
    path: config.manifestPath,
    profileNames: [...profiles.keys()],
    ...(toolsets !== undefined && { toolsets }),
    ...ownQueues(config),
    log: log.child({ part: "manifest" }),
    clock,
    signal,
  });
}

/**
 * The toolsets of `TOOLSETS_DIR`; undefined without one. Their tools cannot choose a profile that
 * isolates nothing.
 */
export async function openToolsets(
  config: Config,
  { log, clock }: Host,
  { profiles, scratchDir }: { readonly profiles: Profiles; readonly scratchDir: string },
  signal: AbortSignal,
): Promise<Toolsets | undefined> {
  const { toolsetsDir } = config;
  if (toolsetsDir === undefined) return undefined;
  const options = {
    directory: toolsetsDir,
    base: join(scratchDir, "toolsets"),
    profileNames: [...profiles.values()].filter(isolates).map(({ name }) => name),
    ...ownQueues(config),
    newId,
    log: log.child({ part: "toolsets" }),
    clock,
  };
  return Toolsets.open(options, signal);
}

/** The queues that tools can name; a DevBroker has none, so that they may name any. */
function ownQueues({ broker, queues }: Config): { readonly queues?: readonly string[] } {
  return broker.kind === "dev" ? {} : { queues: [...queues.keys()] };
}
