/**
 * The worker that is attacked, as the wiring opens it: everything that calls go through in
 * production, with tools, store and bounds of the attacks.
 */
import type { ArtifactStore } from "../../artifacts/store.ts";
import type { Invoker } from "../../invocation/invoker.ts";
import type { ToolCatalog } from "../../manifest/catalog.ts";
import type { Runtime } from "../../manifest/manifest.ts";
import type { ToolRunner } from "../../runners/runner.ts";
import type { IdleStartMode, Profiles } from "../../sandbox/profile.ts";
import type { SandboxBackend } from "../../sandbox/sandbox.ts";
import type { Starts, IdleFailure } from "../../pool/starts.ts";

/** What a worker has to be opened with to be attacked. */
export interface AttackedOptions {
  readonly manifestPath: string;
  /** In place of TOOLS_PYTHON_DIR. */
  readonly toolsDir: string;
  /** Variables that the worker has besides its own. */
  readonly environment: Readonly<Record<string, string>>;
  /** In place of the artifact store. */
  readonly store: ArtifactStore;
  /** In place of the profiles: the same with lower limits. */
  readonly profiles: Profiles;
}

/** What is ready before the calls of a tool. */
export interface Readiness {
  /** How many sandboxes are idle. */
  readonly idle: number;
  /** How they are made; undefined when there can be none, such as for code unfit for each mode. */
  readonly startMode: IdleStartMode | undefined;
  /** Failed attempts to make one, in a row; undefined when the last one succeeded. */
  readonly failure: IdleFailure | undefined;
}

/**
 * The parts of a worker that attacks need. At least two calls run at once. Nothing waits for calls
 * until it follows tools.
 */
export interface AttackedWorker extends AsyncDisposable {
  readonly invoker: Invoker;
  readonly backend: Pick<SandboxBackend, "scratchDir" | "facts">;
  readonly runners: ReadonlyMap<Runtime, Pick<ToolRunner, "prepare">>;
  readonly catalog: Pick<ToolCatalog, "resolve">;
  readonly starts: Pick<Starts, "follow">;
  /** What is known of a tool that `starts` follows. */
  readinessOf(toolName: string): Readiness;
}
