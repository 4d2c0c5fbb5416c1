/**
 * Files of test cases, `NAME.test.yaml` beside a tool: where they are, and what they say.
 */
import { glob, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import {
  DocumentProblems,
  type FileProblem,
  boundedProblems,
  formatProblem,
  problemsAt,
} from "../../../worker/support/file-problems.ts";
import { type JsonObject, isJsonObject } from "../../../worker/support/json/json.ts";
import { readDocument } from "../../../worker/support/json/yaml-document.ts";
import { accepts, acceptsKeys } from "../../../worker/support/text/expectation.ts";
import { UsageError } from "../../context.ts";
import { shortPath } from "../../options/typed-command.ts";

/** How the files end. */
export const caseFileEnding = ".test.yaml";
/** Bytes of a file. */
const maxFileBytes = 1024 * 1024;
/** Files below a directory of tools. */
const maxFiles = 1_000;

const text = z.string(accepts("a text"));
const name = text.min(1, accepts("a text that is not empty"));
const object = z.custom<JsonObject>(isJsonObject, accepts("a map"));

const maps = <T extends z.ZodRawShape>(shape: T) =>
  z.strictObject(shape, acceptsKeys("a map", Object.keys(shape)));

const input = z.union(
  [name, maps({ filename: name, text })],
  accepts("a file, or filename and text"),
);
const inputs = z.union([input, z.array(input)], accepts("an artifact, or a list of them"));
const failure = z.union(
  [
    name.transform((code) => ({ code, message: undefined })),
    maps({ code: name, message: text.optional() }),
  ],
  accepts("a code, or code and message"),
);

/** Schema of what a case expects. */
export const expected = maps({
  result: object.optional(),
  result_includes: object.optional(),
  error: failure.optional(),
  artifacts: z.record(z.string(), text, accepts("a map of texts")).optional(),
  statuses: z.array(text, accepts("a list of texts")).optional(),
}).refine(({ error, result, result_includes: part, artifacts }) => {
  return error === undefined || (result ?? part ?? artifacts) === undefined;
}, "a call that fails has neither a result nor artifacts");

/** Schema of a case. */
export const testCase = maps({
  name,
  tool: name.optional(),
  args: object.default({}),
  artifacts: z.record(z.string(), inputs, accepts("a map of artifacts")).default({}),
  config: object.default({}),
  skip: name.optional(),
  expect: expected,
});

const file = maps({ tool: name, cases: z.array(testCase, accepts("a list of cases")).min(1) });

/** What a call of a case should come to. */
export type Expected = z.output<typeof expected>;
/** A case. Artifacts by parameter: a path from the file on, or a text. */
export interface TestCase extends z.output<typeof testCase> {
  /** As the manifest calls it. */
  readonly tool: string;
}
/** An input artifact of a case. */
export type CaseInput = z.output<typeof input>;

/** The cases of a file. */
export interface CaseFile {
  readonly path: string;
  readonly cases: readonly TestCase[];
}

/**
 * Paths of the files below absolute directories, sorted. Throws UsageError for more than can be
 * right.
 */
export async function findCaseFiles(directories: readonly string[]): Promise<readonly string[]> {
  const paths = new Set<string>();
  for (const cwd of new Set(directories)) {
    const exclude = (entry: string): boolean => /(^|\/)(node_modules|\.[^/]*)$/.test(entry);
    for await (const found of glob(`**/*${caseFileEnding}`, { cwd, exclude })) {
      paths.add(shortPath(join(cwd, found)));
      if (paths.size > maxFiles)
        throw new UsageError(`${cwd} has more than ${maxFiles} test files`);
    }
  }
  return [...paths].sort();
}

/** Reads a file. Throws UsageError with every problem and its place. */
export async function readCaseFile(path: string): Promise<CaseFile> {
  const { size } = await stat(path);
  if (size > maxFileBytes) throw new UsageError(`${path} has more than ${maxFileBytes} bytes`);
  const reading = readDocument(await readFile(path));
  if (!reading.ok) throw unusable(path, problemsAt(reading.findings));
  const parsed = file.safeParse(reading.document.value, { reportInput: true });
  if (parsed.success) {
    const { tool, cases } = parsed.data;
    return { path, cases: cases.map((each) => ({ ...each, tool: each.tool ?? tool })) };
  }
  const found = new DocumentProblems(reading.document, "cases", "case");
  found.addIssues([], parsed.error);
  throw unusable(path, found.problems);
}

function unusable(path: string, problems: readonly FileProblem[]): UsageError {
  const lines = boundedProblems(problems).map((problem) => formatProblem(path, problem));
  return new UsageError(lines.join("\n"));
}
