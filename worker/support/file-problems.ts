/**
 * The problems of an operator's file, one line each with its position.
 */
import { describeValue } from "./text/expectation.ts";
import type { Finding, Path, SourceDocument } from "./json/yaml-document.ts";

/** Largest number of reported problems: a file of the wrong kind has one per line. */
export const maxProblems = 100;

/** Characters of an entry's name in a problem. */
const maxNameLength = 100;

/** One problem of a file, with its position and the accepted values. */
export interface FileProblem {
  /** 1-based; undefined for a problem without a position, such as a missing file. */
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** The entry, such as `tool "echo"`. */
  readonly entry: string | undefined;
  readonly field: string | undefined;
  readonly message: string;
}

/** An issue of a schema, such as zod's. */
interface SchemaIssue {
  readonly code?: string;
  readonly path: Path;
  readonly message: string;
  /** The unknown keys of an issue about keys. */
  readonly keys?: readonly string[];
  /** Of a value that is none of several alternatives: the issues with each. */
  readonly errors?: readonly (readonly SchemaIssue[])[];
}

/** One line for people: `FILE:LINE:COLUMN: tool "x": field: message`. */
export function formatProblem(path: string, problem: FileProblem): string {
  const { line, column, entry, field, message } = problem;
  const location = line === undefined ? path : `${path}:${line}:${column ?? 1}`;
  return [location, ...[entry, field].filter((part) => part !== undefined), message].join(": ");
}

/** A problem of the file as a whole. */
export function problemOfFile(message: string): FileProblem {
  return { line: undefined, column: undefined, entry: undefined, field: undefined, message };
}

/** Problems with a position and without an entry. */
export function problemsAt(findings: readonly Finding[]): FileProblem[] {
  return findings.map((finding) => ({ entry: undefined, field: undefined, ...finding }));
}

/** At most {@link maxProblems} in reading order, and the number of the others. */
export function boundedProblems(problems: readonly FileProblem[]): readonly FileProblem[] {
  const sorted = problems.toSorted(
    (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
  const listed = sorted.slice(0, maxProblems);
  const firstLeftOut = sorted[maxProblems];
  if (firstLeftOut === undefined) return listed;
  const message = `and ${sorted.length - maxProblems} more from here on`;
  return [...listed, { ...firstLeftOut, entry: undefined, field: undefined, message }];
}

/** Collects the problems and warnings of a document. */
export class DocumentProblems {
  readonly problems: FileProblem[] = [];
  readonly warnings: FileProblem[] = [];
  readonly #document: SourceDocument;
  readonly #section: string;
  readonly #kind: string;

  /**
   * @param section top-level key of the map of entries
   * @param kind word for an entry in messages
   */
  constructor(document: SourceDocument, section: string, kind: string) {
    this.#document = document;
    this.#section = section;
    this.#kind = kind;
  }

  add(path: Path, message: string, part?: "key" | "value"): void {
    this.problems.push(this.#at(path, message, part));
  }

  warn(path: Path, message: string): void {
    this.warnings.push(this.#at(path, message, "key"));
  }

  /** Adds the issues of a schema for the value at `path`; an unknown key has its own position. */
  addIssues(path: Path, error: { readonly issues: readonly SchemaIssue[] } | undefined): void {
    for (const issue of (error?.issues ?? []).flatMap(issuesInside)) {
      const fullPath = [...path, ...issue.path];
      if (issue.code === "unrecognized_keys")
        for (const key of issue.keys ?? []) this.add([...fullPath, key], issue.message, "key");
      else this.add(fullPath, issue.message);
    }
  }

  #at(path: Path, message: string, part?: "key" | "value"): FileProblem {
    return { ...this.#document.positionOf(path, part), ...this.#namesOf(path), message };
  }

  /** Names of a path `tools`, `echo`, `env`, 1: the entry `tool "echo"` and the field `env[1]`. */
  #namesOf([top, ...rest]: Path): Pick<FileProblem, "entry" | "field"> {
    if (top === undefined) return { entry: undefined, field: undefined };
    if (top !== this.#section) return { entry: undefined, field: fieldName([top, ...rest]) };
    const [name, ...inside] = rest;
    if (name === undefined) return { entry: undefined, field: fieldName([top]) };
    const text = String(name);
    const shown = text.length > maxNameLength ? `${text.slice(0, maxNameLength)}…` : text;
    return { entry: `${this.#kind} ${JSON.stringify(shown)}`, field: fieldName(inside) };
  }
}

/**
 * Of a value that is none of several alternatives, the issues inside the one of its own kind: a map
 * with a wrong member is not just "no map that is accepted".
 */
function issuesInside(issue: SchemaIssue): readonly SchemaIssue[] {
  const inside = issue.errors?.find((issues) => issues.some(({ path }) => path.length > 0));
  if (inside === undefined) return [issue];
  return inside
    .flatMap(issuesInside)
    .map((found) => ({ ...found, path: [...issue.path, ...found.path] }));
}

/** `env[1]`, `limits.memory_mb`. Unusual keys are quoted and cut. */
function fieldName(path: Path): string | undefined {
  const names = path.map((step, index) => {
    if (typeof step === "number") return `[${step}]`;
    const isPlain = typeof step === "string" && /^[\w.-]{1,60}$/.test(step);
    return `${index === 0 ? "" : "."}${isPlain ? step : describeValue(step)}`;
  });
  return names.length === 0 ? undefined : names.join("");
}
