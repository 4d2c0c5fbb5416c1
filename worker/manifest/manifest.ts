/**
 * What the tool manifest says, as the rest of the worker sees it (design document, section 6).
 */
import { startKinds } from "../protocol/execution.ts";
import type { NetworkMode } from "../protocol/operator-fields.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { Limits } from "../protocol/resource-limits.ts";
import { type FileProblem, formatProblem } from "../support/file-problems.ts";

/** Languages a tool can be written in. */
export type Runtime = "python" | "node";

/** What a tool's module holds: a function, or a class whose instances run calls. */
export interface ToolCallable {
  readonly kind: "function" | "class";
  readonly name: string;
}

/** A file or directory of the host that a tool sees read-only. */
export interface ToolMount {
  /** Path on the host. */
  readonly source: string;
  /** Path inside. */
  readonly target: string;
}

/**
 * How an operator wants calls of a tool to come to their sandboxes: by one way and, where that
 * cannot be gone, cold, or by the best of them (`auto`).
 */
export const startModes = ["auto", ...startKinds] as const;
export type StartMode = (typeof startModes)[number];

/** How many sandboxes of a tool wait for calls. */
export interface WarmBounds {
  readonly min: number;
  readonly max: number;
}

/** One tool of the manifest. Immutable: a running call keeps the entry it resolved. */
export interface ToolEntry {
  readonly name: string;
  readonly runtime: Runtime;
  /**
   * Python: import path of the tool's module. Node: path of its file below the tools' directory.
   */
  readonly module: string;
  readonly callable: ToolCallable;
  /** Package the tool needs, with its version constraint. */
  readonly package: { readonly name: string; readonly version: string | undefined } | undefined;
  readonly description: string | undefined;
  /** Seconds the operator grants the tool, or undefined when the manifest does not say. */
  readonly timeoutSeconds: number | undefined;
  /** Name of the profile the operator chose, or undefined when the manifest does not say. */
  readonly profile: string | undefined;
  /** Bounds that hold for this tool in place of its profile's. */
  readonly limits: Partial<Limits>;
  /**
   * Network that this tool has in place of its profile's, or undefined when the manifest does not
   * say.
   */
  readonly network: NetworkMode | undefined;
  /** Whether the tool's own module is all that it sees of the directory of tools. */
  readonly isolate: boolean;
  readonly mounts: readonly ToolMount[];
  /** Device files of the host that the tool may use, by their paths below /dev. */
  readonly devices: readonly string[];
  /**
   * Whether a call that has started may be handed to another worker, by one that shuts down or
   * cannot publish the answer.
   */
  readonly idempotent: boolean;
  /** The queue of the worker group in which its calls wait. */
  readonly queue: string;
  readonly start: StartMode;
  readonly warm: WarmBounds;
  /** Names of the worker's environment variables that this tool may see. */
  readonly env: readonly string[];
}

/** A tool of the file that is not served. */
export interface UnavailableTool extends Refusal {
  /**
   * Undefined for a tool that other workers serve: another kind of worker, or those that consume
   * its queue.
   */
  readonly entry: ToolEntry | undefined;
  /** The queue of a tool that is left to other workers since they consume it. */
  readonly queue?: string;
}

/** A manifest that parsed. */
export interface Manifest {
  /** SHA-256 of the file's bytes, hex. */
  readonly revision: string;
  /** The tools to serve, by name. */
  readonly tools: ReadonlyMap<string, ToolEntry>;
  /** Tools that are in the file and not served, by name. Never in `tools` as well. */
  readonly unavailable: ReadonlyMap<string, UnavailableTool>;
}

/**
 * What became of the served tools from one manifest to another: names, sorted. All three are empty
 * when only tools came or went that are not served.
 */
export interface ManifestChange {
  /** The manifest that the change leads to. */
  readonly manifest: Manifest;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Served before and after, by an entry that differs. */
  readonly changed: readonly string[];
}

/** The tools whose calls the worker subscribes to: it runs them, or answers why it cannot. */
export function answeredTools({ tools, unavailable }: Manifest): ReadonlyMap<string, ToolEntry> {
  const refused = [...unavailable].flatMap(([name, { entry }]) =>
    entry === undefined ? [] : [[name, entry] as const],
  );
  return new Map([...tools, ...refused]);
}

/** The tools whose calls the worker takes, each with its queue. */
export function queuesOfTools(manifest: Manifest): ReadonlyMap<string, string> {
  const tools = answeredTools(manifest).values();
  return new Map(Array.from(tools, ({ name, queue }) => [name, queue]));
}

/**
 * A manifest that cannot be used. `message` holds one line per problem: `FILE:LINE:COLUMN: tool
 * "x": field: …`.
 */
export class ManifestError extends Error {
  readonly problems: readonly FileProblem[];

  constructor(path: string, problems: readonly FileProblem[], options?: { cause?: unknown }) {
    super(problems.map((problem) => formatProblem(path, problem)).join("\n"), options);
    this.name = "ManifestError";
    this.problems = problems;
  }
}
