/**
 * Parses a manifest file to a Manifest, or to all of its problems with line and column.
 */
import type { Credential } from "../protocol/credential.ts";
import type { Network } from "../protocol/network-rules.ts";
import { entryNameSchema } from "../protocol/operator-fields.ts";
import { publicRefusal } from "../protocol/refusal.ts";
import { credentialProblems } from "../protocol/request-rules.ts";
import { expectation } from "../support/text/expectation.ts";
import {
  boundedProblems,
  DocumentProblems,
  type FileProblem,
  problemsAt,
} from "../support/file-problems.ts";
import { nearest } from "../support/text/near-miss.ts";
import {
  isRecord,
  type Path,
  readDocument,
  type SourceDocument,
} from "../support/json/yaml-document.ts";
import { readCredentials } from "./fields/credentials.ts";
import { ruleWarnings } from "./fields/dead-rules.ts";
import { descriptionKeys } from "./fields/described.ts";
import { isExecutable } from "./fields/executable.ts";
import { isVersion } from "./fields/interpreter.ts";
import { toEntries } from "./entries.ts";
import { limitRepeats } from "./nested-repeats.ts";
import { type Manifest, ManifestError, type ToolEntry, type UnavailableTool } from "./manifest.ts";
import { revisionOf } from "./revision.ts";
import {
  foreignKeys,
  maxTools,
  type ToolFields,
  schemaOf,
  type ToolSchemas,
  toolSchemas,
  versionSchema,
} from "./schema.ts";

/** Options of {@link parseManifest}. */
export interface ParseOptions {
  /** The file's path, for messages only. */
  readonly path: string;
  /** Names of all sandbox profiles. */
  readonly profileNames: readonly string[];
  /** Queues that this worker consumes; all by default. Tools of others are unavailable. */
  readonly queues?: readonly string[];
  /**
   * Whether this worker runs executables; by default it does. Other workers have those that it does
   * not run.
   */
  readonly runsExecutables?: boolean;
  /** Of a toolset: stands before the names of its tools, which get nothing of the host. */
  readonly prefix?: string;
}

/** A manifest with its warnings, mostly about unused keys. */
export interface ParsedManifest {
  readonly manifest: Manifest;
  readonly warnings: readonly FileProblem[];
}

/**
 * Parses a manifest. `tools: {}` has no tools; an empty file or `tools:` may be half-written and is
 * refused. Throws ManifestError with all problems.
 */
export function parseManifest(bytes: Uint8Array, options: ParseOptions): ParsedManifest {
  const reading = readDocument(bytes);
  if (!reading.ok)
    throw new ManifestError(options.path, boundedProblems(problemsAt(reading.findings)));
  const walk = new ManifestWalk(reading.document, options);
  walk.readFile();
  const { tools, unavailable, found } = walk;
  if (found.problems.length > 0)
    throw new ManifestError(options.path, boundedProblems(found.problems));
  const warnings = [...problemsAt(reading.document.warnings), ...found.warnings];
  return {
    manifest: { revision: revisionOf(bytes), tools, unavailable },
    warnings: boundedProblems(warnings),
  };
}

/**
 * What a toolset's manifest cannot have: the host's things, scripts beside its own code, other
 * tools, and a place among them.
 */
const hostFields = ["env", "mounts", "devices", "install_scripts", "gateway", "namespace"];

/** One walk through a document, which collects all problems. */
class ManifestWalk {
  readonly tools = new Map<string, ToolEntry>();
  readonly unavailable = new Map<string, UnavailableTool>();
  readonly found: DocumentProblems;
  readonly #document: SourceDocument;
  readonly #schemas: ToolSchemas;

  readonly #queues: readonly string[] | undefined;
  readonly #runsExecutables: boolean;
  readonly #prefix: string;
  #credentials: ReadonlyMap<string, Credential> = new Map();
  /** Tools of other workers that entries name, with the place. */
  readonly #remote: { readonly path: Path; readonly name: string }[] = [];

  constructor(
    document: SourceDocument,
    { profileNames, queues, runsExecutables = true, prefix = "" }: ParseOptions,
  ) {
    this.found = new DocumentProblems(document, "tools", "tool");
    this.#document = document;
    this.#schemas = toolSchemas(profileNames);
    this.#queues = queues;
    this.#runsExecutables = runsExecutables;
    this.#prefix = prefix;
  }

  readFile(): void {
    const file = this.#document.value;
    if (!isRecord(file)) {
      this.found.add([], expectation('a map with "version" and "tools"', file));
      return;
    }
    this.#lookAtKeys([], file, ["version", "credentials", "tools"]);
    this.found.addIssues(["version"], versionSchema.safeParse(file["version"]).error);
    if (isAbsent(file["version"])) this.found.warn(["version"], "missing, taken for 1");
    if (this.#prefix !== "") this.#refuseHostFields([], file, ["credentials"]);
    else this.#credentials = readCredentials(file["credentials"], this.found);
    const tools = file["tools"];
    if (!isRecord(tools)) {
      this.found.add(["tools"], expectation("a map of tool names, or {} for no tools", tools));
      return;
    }
    const entries = Object.entries(tools);
    if (entries.length > maxTools) {
      this.found.add(["tools"], `expected at most ${maxTools} tools, found ${entries.length}`);
      return;
    }
    for (const [name, fields] of entries) this.#readTool(name, fields);
    this.#refuseOwnTools();
    limitRepeats(this.tools);
  }

  /** The worker would call itself over the broker. */
  #refuseOwnTools(): void {
    for (const { path, name } of this.#remote)
      if (this.tools.has(name) || this.unavailable.has(name))
        this.found.add(path, `"${name}" is a tool of this manifest, which "tools" can list`);
  }

  #readTool(name: string, fields: unknown): void {
    const path = ["tools", name];
    this.found.addIssues(path, entryNameSchema.safeParse(name).error);
    const isProvided = isRecord(fields) && isExecutable(fields);
    if (isProvided && !this.#runsExecutables) {
      const reason = "it is an executable, and this worker has no directory of executables";
      this.unavailable.set(this.#prefix + name, { ...publicRefusal(reason), entry: undefined });
      return;
    }
    const schema = schemaOf(this.#schemas, fields);
    if (isRecord(fields)) this.#lookAtKeys(path, fields, Object.keys(schema.shape));
    const checked = schema.safeParse(this.#withVersions(path, fields));
    this.found.addIssues(path, checked.error);
    if (!checked.success) return;
    const { function: ofFunction, class_name: ofClass } = checked.data;
    if (!isAbsent(ofFunction) && !isAbsent(ofClass))
      this.found.warn([...path, "function"], 'not used, since there is a "class_name"');
    if (this.#prefix !== "" && isRecord(fields)) this.#refuseHostFields(path, fields, hostFields);
    if (this.#prefix !== "" && checked.data.runtime === "code")
      this.found.add([...path, "runtime"], "allowed only in the worker's own manifest");
    const problems = credentialProblems(checked.data.network ?? "none", this.#credentials);
    for (const problem of problems)
      this.found.add([...path, "network", ...problem.path], problem.message);
    if ((checked.data.tools ?? []).length > 0) this.#warnOfDescription(path, checked.data);
    const entries = toEntries(name, checked.data, this.#credentials);
    this.#warnOfRules(path, entries[0]?.network);
    for (const [index, name] of (entries[0]?.gateway?.remote ?? []).entries())
      this.#remote.push({ path: [...path, "gateway", "remote", index], name });
    for (const entry of entries) this.#addTool(path, { ...entry, name: this.#prefix + entry.name });
  }

  /** Versions of interpreters as they are written: YAML reads 3.10 as 3.1. */
  #withVersions(path: Path, fields: unknown): unknown {
    if (!isRecord(fields)) return fields;
    const written = ["python", "node"].flatMap((field) => {
      const source = this.#document.sourceOf([...path, field]);
      return typeof fields[field] === "number" && isVersion(source) ? [[field, source]] : [];
    });
    return { ...fields, ...Object.fromEntries(written) };
  }

  #refuseHostFields(path: Path, fields: Record<string, unknown>, refused: readonly string[]): void {
    for (const field of refused)
      if (!isAbsent(fields[field]))
        this.found.add([...path, field], "allowed only in the worker's own manifest");
  }

  /** One description cannot be that of several tools. */
  #warnOfDescription(path: Path, fields: ToolFields): void {
    for (const key of ["description", ...descriptionKeys] as const) {
      if (isAbsent(fields[key])) continue;
      this.found.warn([...path, key], 'not used, since "tools" names several tools');
    }
  }

  /** All tools of an entry have its network. */
  #warnOfRules(path: Path, network: Network | undefined): void {
    if (network === undefined || typeof network === "string") return;
    const rules = network.lists.flat();
    // That of public addresses stands before those of the list.
    const first = rules[0]?.host.kind === "any" ? 1 : 0;
    for (const [index, message] of ruleWarnings(rules))
      this.found.warn([...path, "network", "allow", index - first], message);
  }

  #addTool(path: Path, entry: ToolEntry): void {
    const { name } = entry;
    if (this.#prefix !== "") this.found.addIssues(path, entryNameSchema.safeParse(name).error);
    if (this.tools.has(name) || this.unavailable.has(name)) {
      this.found.add(path, `the tool "${name}" is there already`);
    } else if (this.#queues?.includes(entry.queue) === false) {
      const reason = `its queue "${entry.queue}" is none of WORKER_QUEUES; other workers serve it`;
      this.unavailable.set(name, {
        ...publicRefusal(reason),
        entry: undefined,
        queue: entry.queue,
      });
    } else this.tools.set(name, entry);
  }

  /** A misspelt key is a problem: the tool would run without its setting. */
  #lookAtKeys(path: Path, map: Record<string, unknown>, known: readonly string[]): void {
    for (const key of Object.keys(map)) {
      if (known.includes(key)) continue;
      const meant = foreignKeys.has(key) ? undefined : nearest(key, known);
      if (meant !== undefined)
        this.found.add([...path, key], `unknown key; is "${meant}" meant?`, "key");
      else if (foreignKeys.has(key)) this.found.warn([...path, key], "not used by this worker");
      else {
        const message = `unknown key, not used; the keys are ${known.join(", ")}`;
        this.found.warn([...path, key], message);
      }
    }
  }
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
