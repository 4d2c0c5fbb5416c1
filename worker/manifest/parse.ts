/**
 * The text of a manifest file → Manifest, or every problem in it with line and column.
 */
import type { ZodError } from "zod";
import { maxToolNameBytes } from "../protocol/topics.ts";
import { type Finding, type Path, readDocument, type SourceDocument } from "./document.ts";
import {
  type Manifest,
  ManifestError,
  type ManifestProblem,
  type ToolCallable,
  type ToolEntry,
} from "./manifest.ts";
import { revisionOf } from "./revision.ts";
import {
  describeValue,
  expectation,
  foreignKeys,
  foreignKinds,
  maxTools,
  type ToolFields,
  toolNameSchema,
  type ToolSchemas,
  toolSchemas,
  versionSchema,
} from "./schema.ts";

/** Problems told at once. A file of the wrong kind has one per line, and logs have limits of their own. */
export const maxProblems = 100;

/** What a manifest is read with. */
export interface ParseOptions {
  /** The file's path; it only appears in messages. */
  readonly path: string;
  /** Names of the sandbox profiles that exist. */
  readonly profileNames: readonly string[];
}

/** A manifest with what is odd about it: keys that are not used, most of all. */
export interface ParsedManifest {
  readonly manifest: Manifest;
  readonly warnings: readonly ManifestProblem[];
}

/**
 * Reads a manifest. The whole file is good or none of it.
 *
 * An explicit `tools: {}` is a manifest of no tools; an empty file, or `tools:` with nothing after it, is what a
 * half-written file looks like and is refused. An entry that describes another worker's kind of tool (`executable`)
 * is listed as unavailable. Throws ManifestError with up to {@link maxProblems} problems.
 */
export function parseManifest(bytes: Uint8Array, options: ParseOptions): ParsedManifest {
  const reading = readDocument(bytes);
  if (!reading.ok) throw new ManifestError(options.path, bounded(reading.findings.map(atTopLevel)));
  const walk = new ManifestWalk(reading.document, options.profileNames);
  walk.readFile();
  const { tools, unavailable, problems } = walk;
  if (problems.length > 0) throw new ManifestError(options.path, bounded(problems));
  const warnings = [...reading.document.warnings.map(atTopLevel), ...walk.warnings];
  return {
    manifest: { revision: revisionOf(bytes), tools, unavailable },
    warnings: bounded(warnings),
  };
}

/** One walk through a document, in which everything that is wrong is gathered instead of thrown. */
class ManifestWalk {
  readonly tools = new Map<string, ToolEntry>();
  readonly unavailable = new Map<string, string>();
  readonly problems: ManifestProblem[] = [];
  readonly warnings: ManifestProblem[] = [];
  readonly #document: SourceDocument;
  readonly #schemas: ToolSchemas;

  constructor(document: SourceDocument, profileNames: readonly string[]) {
    this.#document = document;
    this.#schemas = toolSchemas(profileNames);
  }

  readFile(): void {
    const file = this.#document.value;
    if (!isMap(file)) {
      this.#problem([], expectation('a map with "version" and "tools"', file));
      return;
    }
    this.#warnOfUnusedKeys([], file, ["version", "tools"]);
    this.#problemsOf(["version"], versionSchema.safeParse(file["version"]).error);
    const tools = file["tools"];
    if (!isMap(tools)) {
      this.#problem(["tools"], expectation("a map of tool names, or {} for no tools", tools));
      return;
    }
    const entries = Object.entries(tools);
    if (entries.length > maxTools) {
      this.#problem(["tools"], `expected at most ${maxTools} tools, found ${entries.length}`);
      return;
    }
    for (const [name, fields] of entries) this.#readTool(name, fields);
  }

  #readTool(name: string, fields: unknown): void {
    const path = ["tools", name];
    this.#problemsOf(path, toolNameSchema.safeParse(name).error);
    const foreignKind = foreignKindOf(fields);
    if (foreignKind !== undefined) {
      const reason = `it is given by "${foreignKind}"; this worker runs functions and classes of modules`;
      this.unavailable.set(name, reason);
      return;
    }
    const schema = this.#schemas[isMap(fields) && fields["runtime"] === "node" ? "node" : "python"];
    if (isMap(fields)) this.#warnOfUnusedKeys(path, fields, Object.keys(schema.shape));
    const checked = schema.safeParse(fields);
    this.#problemsOf(path, checked.error);
    if (checked.success) this.tools.set(name, toEntry(name, checked.data));
  }

  #warnOfUnusedKeys(path: Path, map: Record<string, unknown>, known: readonly string[]): void {
    for (const key of Object.keys(map)) {
      if (known.includes(key)) continue;
      const message = foreignKeys.has(key)
        ? "not used by this worker"
        : `unknown key, not used; the keys are ${known.join(", ")}`;
      const place = this.#document.placeOf([...path, key], "key");
      this.warnings.push({ ...place, ...namesOf([...path, key]), message });
    }
  }

  #problem(path: Path, message: string): void {
    this.problems.push({ ...this.#document.placeOf(path), ...namesOf(path), message });
  }

  #problemsOf(path: Path, error: ZodError | undefined): void {
    for (const issue of error?.issues ?? []) this.#problem([...path, ...issue.path], issue.message);
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/** The key that makes the entry a tool of another worker, or undefined when it is (meant to be) one of ours. */
function foreignKindOf(fields: unknown): string | undefined {
  if (!isMap(fields)) return undefined;
  if (!isAbsent(fields["function"]) || !isAbsent(fields["class_name"])) return undefined;
  return foreignKinds.find((kind) => !isAbsent(fields[kind]));
}

function toEntry(name: string, fields: ToolFields): ToolEntry {
  return {
    name,
    runtime: fields.runtime ?? "python",
    module: fields.module,
    callable: toCallable(fields),
    package: toPackage(fields),
    description: fields.description ?? undefined,
    timeoutSeconds: fields.timeout_seconds ?? undefined,
    profile: fields.sandbox_profile ?? undefined,
    idempotent: fields.idempotent ?? true,
    env: [...new Set(fields.env ?? [])],
  };
}

/** The schema has made sure that there is one of them. */
function toCallable({ function: name, class_name: className }: ToolFields): ToolCallable {
  return typeof className === "string"
    ? { kind: "class", name: className }
    : { kind: "function", name: name ?? "" };
}

function toPackage({ package: name, version }: ToolFields): ToolEntry["package"] {
  if (typeof name !== "string") return undefined;
  // Blanks mean nothing in a constraint, and without them it is one word of an argument list.
  return { name, version: version?.replaceAll(/\s+/g, "") };
}

/** The tool and the field of a path such as `tools`, `echo`, `env`, 1: "echo" and "env[1]". */
function namesOf(path: Path): Pick<ManifestProblem, "tool" | "field"> {
  const [top, name, ...inside] = path;
  if (top !== "tools" || name === undefined) return { tool: undefined, field: fieldName(path) };
  const tool = String(name);
  const shown = tool.length > maxToolNameBytes ? `${tool.slice(0, maxToolNameBytes)}…` : tool;
  return { tool: shown, field: fieldName(inside) };
}

/** Fields are nested no deeper than a list. A key that is not a plain word is quoted, and cut when it is long. */
function fieldName([field, index]: Path): string | undefined {
  if (field === undefined) return undefined;
  const isPlain = typeof field === "string" && /^[\w.-]{1,60}$/.test(field);
  const shown = isPlain ? field : describeValue(field);
  return typeof index === "number" ? `${shown}[${index}]` : shown;
}

function atTopLevel(finding: Finding): ManifestProblem {
  return { tool: undefined, field: undefined, ...finding };
}

/** In reading order, at most {@link maxProblems} and the number of those left out. */
function bounded(problems: readonly ManifestProblem[]): ManifestProblem[] {
  const sorted = problems.toSorted(
    (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
  const told = sorted.slice(0, maxProblems);
  const firstLeftOut = sorted[maxProblems];
  if (firstLeftOut === undefined) return told;
  const message = `and ${sorted.length - maxProblems} more from here on`;
  return [...told, { ...firstLeftOut, tool: undefined, field: undefined, message }];
}
