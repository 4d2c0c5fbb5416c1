/**
 * What a catalog serves: the newest manifest, without the tools that this worker refuses.
 */
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import { type AdmitTool, withoutRefused } from "./availability.ts";
import { diffManifests } from "./diff.ts";
import type { Manifest, ManifestChange } from "./manifest.ts";
import type { MergedManifest } from "./toolsets/merge.ts";
import type { Toolsets } from "./toolsets/toolsets.ts";

/** The catalog's log; a pino logger fits. */
export type ManifestLog = EventLog<"info" | "warn" | "error">;

/** How manifests are served. */
export interface ServingOptions {
  /** Told which states have served tools. */
  readonly toolsets?: Pick<Toolsets, "retain">;
  /** Checks the tools of this worker; all are available by default. */
  readonly admit?: AdmitTool;
  /**
   * Told after each change of what is served, and before `admit` is asked again: what is served,
   * and the newest entries of all tools.
   */
  readonly onServed?: (served: Manifest, newest: Manifest) => void;
  readonly log: ManifestLog;
}

const noTools: Manifest = { revision: "", tools: new Map(), unavailable: new Map() };

/** The served manifest and its changes. One caller replaces it, one step at a time. */
export class ServedManifest {
  readonly #options: ServingOptions;
  readonly #opened: Manifest;
  #newest: MergedManifest;
  /** The served part of it. */
  #manifest: Manifest;
  #swapped = Promise.withResolvers<void>();

  private constructor(options: ServingOptions, newest: MergedManifest, manifest: Manifest) {
    this.#options = options;
    this.#newest = newest;
    this.#opened = manifest;
    this.#manifest = manifest;
  }

  /** Serves a first manifest. Rejects with the signal's reason. */
  static async open(
    newest: MergedManifest,
    options: ServingOptions,
    signal: AbortSignal,
  ): Promise<ServedManifest> {
    const { log, admit = admitAll } = options;
    const manifest = await withoutRefused(newest.manifest, noTools, admit, signal);
    logWarnings(log, newest.warnings);
    logServed(log, noTools, manifest);
    return new ServedManifest(options, newest, manifest);
  }

  /** Immutable. */
  get manifest(): Manifest {
    return this.#manifest;
  }

  /** With the tools that are not served. */
  get newest(): MergedManifest {
    return this.#newest;
  }

  /** Whether a tool of the newest manifest is not served, or not by its newest entry. */
  get refusesTools(): boolean {
    const { tools } = this.#manifest;
    return this.#newest.manifest.tools.values().some((tool) => tools.get(tool.name) !== tool);
  }

  /** Serves a manifest. Rejects with the signal's reason. */
  async replace(newest: MergedManifest, signal: AbortSignal): Promise<void> {
    const { log, toolsets, onServed, admit = admitAll } = this.#options;
    const before = this.#manifest;
    const manifest = await withoutRefused(newest.manifest, before, admit, signal);
    this.#newest = newest;
    this.#manifest = manifest;
    logServed(log, before, manifest);
    onServed?.(manifest, newest.manifest);
    this.#swapped.resolve();
    this.#swapped = Promise.withResolvers<void>();
    await toolsets?.retain([...toolsetsOf(manifest), ...toolsetsOf(newest.manifest)]);
  }

  /** The changes since the opening until `following` ends. Rejects as that does. */
  async *changes(
    following: Promise<void>,
    closing: AbortSignal,
  ): AsyncGenerator<ManifestChange, void, undefined> {
    let seen = this.#opened;
    while (!closing.aborted) {
      const change = diffManifests(seen, this.#manifest);
      if (change === undefined) {
        await Promise.race([this.#swapped.promise, following]);
      } else {
        seen = change.manifest;
        yield change;
      }
    }
  }
}

const admitAll: AdmitTool = () => undefined;

/** The states of toolsets that a manifest has tools of. */
function toolsetsOf({ tools }: Manifest) {
  return tools.values().flatMap(({ toolset }) => (toolset === undefined ? [] : [toolset]));
}

/** Logs what a manifest's file and its toolsets warn of. */
export function logWarnings(log: ManifestLog, warnings: readonly string[]): void {
  if (warnings.length > 0) logEvent(log, "manifest.has_warnings", { warnings });
}

function logServed(log: ManifestLog, before: Manifest, manifest: Manifest): void {
  const { revision, tools, unavailable } = manifest;
  const change = diffManifests(before, manifest);
  if (change !== undefined || revision !== before.revision) {
    const { added = [], removed = [], changed = [] } = change ?? {};
    logEvent(log, "manifest.loaded", { revision, tools: tools.size, added, removed, changed });
  }
  for (const [tool, { reason, queue }] of unavailable) {
    if (before.unavailable.get(tool)?.reason === reason) continue;
    if (queue === undefined) logEvent(log, "tool.not_served", { tool, reason });
    else logEvent(log, "tool.left_to_queue", { tool, queue });
  }
}
