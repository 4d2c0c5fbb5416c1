/**
 * The attacked worker: the path of a production call, with the attacks' tools, store and limits.
 */
import type { ArtifactStore } from "../../artifacts/store.ts";
import type { Invoker } from "../../invocation/call-context.ts";
import type { ToolCatalog } from "../../manifest/catalog.ts";
import type { Runtime } from "../../manifest/manifest.ts";
import type { ToolRunner } from "../../runners/runner.ts";
import type { IdleStartMode, Profiles } from "../../sandbox/profile.ts";
import type { SandboxBackend } from "../../sandbox/sandbox.ts";
import type { Starts, IdleFailure } from "../../pool/starts.ts";

/** Options that replace those of the configuration. */
export interface AttackedOptions {
  readonly manifestPath: string;
  /** In place of TOOLS_PYTHON_DIR. */
  readonly toolsDir: string;
  /** Further variables of the worker. */
  readonly environment: Readonly<Record<string, string>>;
  /** In place of the artifact store. */
  readonly store: ArtifactStore;
  /** In place of the profiles: the same with lower limits. */
  readonly profiles: Profiles;
}

/** Idle sandboxes of a tool. */
export interface Readiness {
  /** Number of idle sandboxes. */
  readonly idle: number;
  /** Their start mode; undefined when the tool can have none, such as for unfit code. */
  readonly startMode: IdleStartMode | undefined;
  /** Consecutive failures to make one; undefined after a success. */
  readonly failure: IdleFailure | undefined;
}

/** Parts of a worker for attacks. At least two calls run concurrently. */
export interface AttackedWorker extends AsyncDisposable {
  readonly invoker: Invoker;
  readonly backend: Pick<SandboxBackend, "scratchDir" | "facts">;
  readonly runners: ReadonlyMap<Runtime, Pick<ToolRunner, "prepare">>;
  readonly catalog: Pick<ToolCatalog, "resolve" | "unavailable">;
  readonly starts: Pick<Starts, "follow">;
  /** Names whose addresses sandboxes made the worker find since the last call of this method. */
  takeAskedNames(): readonly string[];
  /** State of a tool that `starts` follows. */
  readinessOf(toolName: string): Readiness;
}
