/**
 * The contract of how sandboxes made ahead learn that the code in them is not the present one any
 * more.
 */
import type { ToolEntry } from "../../manifest/manifest.ts";

/**
 * Versions of everything that tools of a language may load. Its owner disposes it after everything
 * that asks it.
 */
export interface CodeVersions extends AsyncDisposable {
  /** Changes whenever anything that a tool of this language may load has changed. */
  versionOf(runtime: ToolEntry["runtime"]): number;
  /**
   * Tells of each change, at once and after `versionOf` says it. Disposing the answer ends that.
   * The listener must not throw.
   */
  onChange(listener: (runtime: ToolEntry["runtime"]) => void): Disposable;
}
