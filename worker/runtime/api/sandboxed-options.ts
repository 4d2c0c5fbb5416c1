/**
 * Options of backends that run code in sandboxes.
 */
import type { ProgramLanguage } from "../../protocol/tool-calls/program.ts";
import type { RuntimeLogger } from "./runtime.ts";

/** Options of a backend that runs code in sandboxes. */
export interface SandboxedOptions {
  /** Python, TypeScript and JavaScript by default. The first is for requests that name none. */
  readonly languages?: readonly [ProgramLanguage, ...ProgramLanguage[]];
  /** Executions at once; 4 by default. Others wait. */
  readonly maxConcurrent?: number;
  /** Executions that wait, and that wait for tools; 1,000 by default. */
  readonly maxQueued?: number;
  /** Idle sandboxes for each interpreter; none at the start, and 4 at most by default. */
  readonly warm?: { readonly min: number; readonly max: number };
  /** Directories of modules that code can import. */
  readonly modules?: { readonly python?: string; readonly node?: string };
  /** The worker's variables for sandboxes, such as `SANDBOX_PYTHON_BIN`. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Warnings go to standard error as JSON by default. */
  readonly logger?: RuntimeLogger;
  /** Cancels the opening. */
  readonly signal?: AbortSignal;
}
