/**
 * Parses a manifest file to a Manifest, or to all of its problems with line and column.
 */
import { entryNameSchema, toLimits } from "../protocol/operator-fields.ts";
import { defaultQueue } from "../protocol/queue-names.ts";
import { publicRefusal } from "../protocol/refusal.ts";
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
import { toGivenDescription } from "./fields/described.ts";
import { toMount } from "./fields/host.ts";
import { toPackageSet } from "./fields/packages.ts";
import {
  type Manifest,
  ManifestError,
  type ToolCallable,
  type ToolEntry,
  type UnavailableTool,
} from "./manifest.ts";
import { revisionOf } from "./revision.ts";
import { toWarmBounds } from "./fields/warm.ts";
import {
  foreignKeys,
  foreignKinds,
  maxTools,
  type ToolFields,
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
}

/** A manifest with its warnings, mostly about unused keys. */
export interface ParsedManifest {
  readonly manifest: Manifest;
  readonly warnings: readonly FileProblem[];
}

/**
 * Parses a manifest. `tools: {}` has no tools; an empty file or `tools:` may be half-written and is
 * refused. A tool of another kind of worker (`executable`) is unavailable. Throws ManifestError
 * with all problems.
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

/** One walk through a document, which collects all problems. */
class ManifestWalk {
  readonly tools = new Map<string, ToolEntry>();
  readonly unavailable = new Map<string, UnavailableTool>();
  readonly found: DocumentProblems;
  readonly #document: SourceDocument;
  readonly #schemas: ToolSchemas;

  readonly #queues: readonly string[] | undefined;

  constructor(document: SourceDocument, { profileNames, queues }: ParseOptions) {
    this.found = new DocumentProblems(document, "tools", "tool");
    this.#document = document;
    this.#schemas = toolSchemas(profileNames);
    this.#queues = queues;
  }

  readFile(): void {
    const file = this.#document.value;
    if (!isRecord(file)) {
      this.found.add([], expectation('a map with "version" and "tools"', file));
      return;
    }
    this.#lookAtKeys([], file, ["version", "tools"]);
    this.found.addIssues(["version"], versionSchema.safeParse(file["version"]).error);
    if (isAbsent(file["version"])) this.found.warn(["version"], "missing, taken for 1");
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
  }

  #readTool(name: string, fields: unknown): void {
    const path = ["tools", name];
    this.found.addIssues(path, entryNameSchema.safeParse(name).error);
    const foreignKind = foreignKindOf(fields);
    if (foreignKind !== undefined) {
      const reason = `it is given by "${foreignKind}"; this worker runs functions and classes of modules`;
      this.unavailable.set(name, { ...publicRefusal(reason), entry: undefined });
      return;
    }
    const schema =
      this.#schemas[isRecord(fields) && fields["runtime"] === "node" ? "node" : "python"];
    if (isRecord(fields)) this.#lookAtKeys(path, fields, Object.keys(schema.shape));
    const checked = schema.safeParse(fields);
    this.found.addIssues(path, checked.error);
    if (!checked.success) return;
    const { function: ofFunction, class_name: ofClass } = checked.data;
    if (!isAbsent(ofFunction) && !isAbsent(ofClass))
      this.found.warn([...path, "function"], 'not used, since there is a "class_name"');
    const entry = toEntry(name, checked.data);
    if (this.#queues?.includes(entry.queue) === false) {
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

/** The key of a tool of another kind of worker; undefined for tools of this kind. */
function foreignKindOf(fields: unknown): string | undefined {
  if (!isRecord(fields)) return undefined;
  if (!isAbsent(fields["function"]) || !isAbsent(fields["class_name"])) return undefined;
  return foreignKinds.find((kind) => !isAbsent(fields[kind]));
}

function toEntry(name: string, fields: ToolFields): ToolEntry {
  return {
    name,
    runtime: fields.runtime ?? "python",
    module: fields.module,
    callable: toCallable(fields),
    packages: toPackageSet(fields.runtime ?? "python", fields),
    interpreter: fields.python ?? fields.node ?? undefined,
    description: fields.description ?? undefined,
    described: toGivenDescription(fields),
    argumentRules: { validate: fields.validate ?? true, coerce: fields.coerce ?? false },
    timeoutSeconds: fields.timeout_seconds ?? undefined,
    profile: fields.sandbox_profile ?? undefined,
    limits: toLimits(fields.limits),
    network: fields.network ?? undefined,
    isolate: fields.isolate ?? false,
    mounts: (fields.mounts ?? []).map(toMount),
    devices: [...new Set(fields.devices ?? [])],
    idempotent: fields.idempotent ?? true,
    queue: fields.queue ?? defaultQueue,
    start: fields.start ?? "auto",
    warm: toWarmBounds(fields.warm),
    env: [...new Set(fields.env ?? [])],
  };
}

/** The schema guarantees one of them; a class has precedence. */
function toCallable({ function: name, class_name: className }: ToolFields): ToolCallable {
  return typeof className === "string"
    ? { kind: "class", name: className }
    : { kind: "function", name: name ?? "" };
}
