/**
 * What a runtime of OCI containers has to do for `OciBackend`, which does the rest.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Cgroups } from "../cgroup/cgroup.ts";
import type { Enforcement, Unenforced } from "../sandbox.ts";
import type { Subprocess } from "../subprocess.ts";
import type { Bundle } from "./bundle.ts";

/** A runtime of containers. The backend disposes it after the last container is gone. */
export interface OciRuntime extends AsyncDisposable {
  /** Name in registry.ts. */
  readonly backend: string;
  readonly technology: string;
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
  /** Whether the host's kernel runs the command, so that the worker sees its processes. */
  readonly sharesKernel: boolean;
  /** Whether it bounds memory and processes by groups of its own, and its pid 1 heeds no signal. */
  readonly makesGroups: boolean;
  /** Groups that the runtime's processes join; undefined where the runtime makes its own. */
  readonly cgroups: Cgroups | undefined;
  /** See `SandboxUsageOptions.memoryFile`. */
  readonly memoryFile: string | undefined;
  /** What the worker samples, of the host's processes behind a sandbox: `Infinity` is not. */
  sampled(limits: Limits): Limits;
  /** The command line that runs a container to its end, with its output and exit code. */
  command(bundle: Bundle): readonly string[];
  /** A container whose command line was started. */
  attach(bundle: Bundle, child: Subprocess): OciContainer;
}

/** A container from the start of its command line on. */
export interface OciContainer {
  /**
   * Fulfils with the number of the process that all of the sandbox descends from, as the host
   * numbers it; with undefined when the container ended before it had one.
   */
  readonly started: Promise<number | undefined>;
  /** Asks the command to end. */
  terminate(): void;
  /** Kills everything. Call again for what was being born. */
  kill(): void;
  /**
   * Call when the command line has ended: waits until nothing of the container lives, and removes
   * what the runtime keeps of it. Tells whether its command was started. Throws SandboxError.
   */
  ended(): Promise<boolean>;
}
