/**
 * The tool manifest (design document, section 6).
 */
import type { ToolExample } from "../protocol/tool-calls/example.ts";
import { startKinds } from "../protocol/execution.ts";
import type { GatewayLimits } from "../protocol/tool-calls/limits.ts";
import type { ProgramLanguage } from "../protocol/tool-calls/program.ts";
import type { Network } from "../protocol/network-rules.ts";
import type { PublishedDescription } from "../protocol/discovery/messages.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { Limits } from "../protocol/resource-limits.ts";
import { type FileProblem, formatProblem } from "../support/file-problems.ts";

/** Languages a tool can be written in; `executable` is a program of any language. */
export const runtimes = ["python", "node", "executable"] as const;
export type Runtime = (typeof runtimes)[number];

/**
 * A function of a tool's module, a class whose instances run calls, a class that provides several
 * tools, an executable, or the code that a call brings.
 */
export interface ToolCallable {
  readonly kind: "function" | "class" | "provider" | "program" | "code";
  /** Of the function or class; of a program, the name by which it knows the tool. Else empty. */
  readonly name: string;
  /** The tool of a provider that runs calls. */
  readonly provides?: string;
}

/** A read-only mount of a file or directory of the host. */
export interface ToolMount {
  /** Path on the host. */
  readonly source: string;
  /** Path inside. */
  readonly target: string;
}

/** Configured start mode of a tool: one mode with `cold` as fallback, or the best (`auto`). */
export const startModes = ["auto", ...startKinds] as const;
export type StartMode = (typeof startModes)[number];

/** Bounds for the number of idle sandboxes of a tool. */
export interface WarmBounds {
  readonly min: number;
  readonly max: number;
}

/** Packages that a tool needs beside what its interpreter has. */
export interface PackageSet {
  /** In normal form, sorted. Python: PEP 508. Node: `name@range`. */
  readonly requirements: readonly string[];
  /** Path of a requirements file below the directory of Python tools. */
  readonly requirementsFile: string | undefined;
  /** Path of a lockfile below the directory of tools; then there is nothing else. */
  readonly lockfile: string | undefined;
  /** Whether npm runs the packages' install scripts. */
  readonly runsScripts: boolean;
}

/** What the manifest says of arguments and results. */
export interface ArgumentRules {
  /** Whether arguments are checked against the schema of the parameters. */
  readonly validate: boolean;
  /** Whether arguments of the wrong type are converted where nothing is lost. */
  readonly coerce: boolean;
}

/** The manifest's parts of a tool's description; undefined parts are derived from the code. */
export type GivenDescription = Partial<PublishedDescription>;

/** Who may call a tool: agents, or tools with a gateway. */
export type CallerKind = "direct" | "programmatic";

/** What gateways know of a tool besides its description. */
export interface CatalogFields {
  readonly allowedCallers: ReadonlySet<CallerKind>;
  readonly namespace: string | undefined;
  readonly tags: readonly string[];
  readonly examples: readonly ToolExample[];
}

/** What a tool may do by its gateway. */
export interface GatewayGrant {
  /** Ids of the worker's own tools, or `NAMESPACE:*`. */
  readonly tools: readonly string[];
  /** Names of tools of other workers. */
  readonly remote: readonly string[];
  readonly limits: GatewayLimits;
  /** Whether the entry says `idempotent: true`, whatever the called tools say. */
  readonly isIdempotent: boolean;
}

/** One tool of the manifest. Immutable: a running call keeps the entry it resolved. */
export interface ToolEntry {
  readonly name: string;
  readonly runtime: Runtime;
  /**
   * Python: import path of the module. Node: path of the file below the tools' directory.
   * Executable: path of the program below `toolDir`. Empty where calls bring the code.
   */
  readonly module: string;
  /** Directory of the program below the tools' directory, or an absolute path in it. */
  readonly toolDir?: string;
  readonly callable: ToolCallable;
  /** Languages of the code that calls bring; undefined for a tool with code of its own. */
  readonly languages?: readonly ProgramLanguage[];
  /** The toolset that has its code; undefined for the language's directory. */
  readonly toolset?: { readonly name: string; readonly revision: string };
  /** Version, name or path of the interpreter; undefined for the usual one. */
  readonly interpreter: string | undefined;
  /** Packages that the tool needs; undefined for none. */
  readonly packages: PackageSet | undefined;
  readonly description: string | undefined;
  /** The other parts of its description that the manifest gives. */
  readonly described: GivenDescription;
  readonly argumentRules: ArgumentRules;
  /** Time limit in seconds; undefined for the default. */
  readonly timeoutSeconds: number | undefined;
  /** Name of the profile; undefined for the default. */
  readonly profile: string | undefined;
  /** Limits that replace the profile's. */
  readonly limits: Partial<Limits>;
  /** Network that replaces the profile's; undefined for the profile's. */
  readonly network: Network | undefined;
  /** Whether the tool sees only its own module of the directory of tools. */
  readonly isolate: boolean;
  readonly mounts: readonly ToolMount[];
  /** Allowed device files of the host, by their paths below /dev. */
  readonly devices: readonly string[];
  /** Whether another worker may run a started call again, after a shutdown or a lost answer. */
  readonly idempotent: boolean;
  /** The queue of its calls in the worker group. */
  readonly queue: string;
  readonly start: StartMode;
  readonly warm: WarmBounds;
  /** Names of the worker's environment variables that the tool receives. */
  readonly env: readonly string[];
  readonly catalog: CatalogFields;
  /** Undefined for a tool that calls no others. */
  readonly gateway: GatewayGrant | undefined;
}

/** A tool of the file that is not served. */
export interface UnavailableTool extends Refusal {
  /** Undefined for a tool of other workers: of another kind, or consumers of its queue. */
  readonly entry: ToolEntry | undefined;
  /** The queue of a tool that only other workers consume. */
  readonly queue?: string;
}

/** A parsed manifest. */
export interface Manifest {
  /** SHA-256 of the file's bytes, hex. */
  readonly revision: string;
  /** The tools to serve, by name. */
  readonly tools: ReadonlyMap<string, ToolEntry>;
  /** The other tools of the file, by name. */
  readonly unavailable: ReadonlyMap<string, UnavailableTool>;
}

/** Sorted names of served tools that changed between manifests; empty when only others did. */
export interface ManifestChange {
  /** The manifest that the change leads to. */
  readonly manifest: Manifest;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Served before and after, by different entries. */
  readonly changed: readonly string[];
}

/** The id of a tool in gateways. */
export function toolIdOf({ name, catalog }: Pick<ToolEntry, "name" | "catalog">): string {
  return catalog.namespace === undefined ? name : `${catalog.namespace}:${name}`;
}

/** Tools that the worker subscribes to: it runs their calls, or answers with the reason. */
export function answeredTools({ tools, unavailable }: Manifest): ReadonlyMap<string, ToolEntry> {
  const refused = [...unavailable].flatMap(([name, { entry }]) =>
    entry === undefined ? [] : [[name, entry] as const],
  );
  return new Map([...tools, ...refused]);
}

/** Tools that the worker consumes, each with its queue. */
export function queuesOfTools(manifest: Manifest): ReadonlyMap<string, string> {
  const tools = answeredTools(manifest).values();
  return new Map(Array.from(tools, ({ name, queue }) => [name, queue]));
}

/** An unusable manifest; one line per problem: `FILE:LINE:COLUMN: tool "x": field: …`. */
export class ManifestError extends Error {
  readonly problems: readonly FileProblem[];

  constructor(path: string, problems: readonly FileProblem[], options?: { cause?: unknown }) {
    super(problems.map((problem) => formatProblem(path, problem)).join("\n"), options);
    this.name = "ManifestError";
    this.problems = problems;
  }
}
