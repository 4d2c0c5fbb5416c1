/**
 * The fields of a tool that is an executable. Manifests of the Go runtime have the same, so that
 * one file serves both.
 */
import { z } from "zod";
import { limitFacts, type Limits } from "../../protocol/resource-limits.ts";
import { isRecord } from "../../support/json/yaml-document.ts";
import { accepts, unquoted } from "../../support/text/expectation.ts";
import { providedField } from "./provided.ts";

/** Longest path, in characters. */
const maxPathLength = 1024;

/** No empty level, no `.` and `..`, and none that begins with a dash. */
const level = String.raw`(?!\.{1,2}(?:/|$))[\w@+.=~][\w@+.=~-]*`;
const relativePath = new RegExp(`^${level}(?:/${level})*$`);
const directoryPath = new RegExp(`^/?${level}(?:/${level})*/?$`);

const program = accepts('the path of a program below its directory, such as "bin/convert"');
const directory = accepts(
  "the path of a directory below TOOLS_EXECUTABLE_DIR, without . and .. in it",
);
const runtime = accepts("one of python, node, executable, code");
const notUsed = { error: "not used together with an executable" };
const limitMap = accepts("a map of limits");
const bound = accepts("a number above 0");

/** Limits of `resource_limits`; other keys of it have no counterpart. */
const limitKeys = {
  max_cpu_seconds: "cpuSeconds",
  max_file_size_mb: "fileSizeBytes",
  max_open_files: "openFiles",
  max_processes: "processes",
} as const;

/** Whether an entry is an executable, by its own word or as the Go runtime's manifests give one. */
export function isExecutable(fields: Readonly<Record<string, unknown>>): boolean {
  const { runtime: language, executable } = fields;
  if (language === "executable") return true;
  return isGiven(executable) && !isGiven(fields["function"]) && !isGiven(fields["class_name"]);
}

/** Fields of an executable beside those of every tool. */
export const executableShape = {
  runtime: z
    .enum(["executable", "go", "python"], runtime)
    .nullish()
    .describe("executable, or the language that other workers are told."),
  executable: z
    .string(program)
    .max(maxPathLength, program)
    .regex(relativePath, program)
    .describe("Path of the program below tool_dir, or below its python/bin."),
  tool_dir: z
    .string(directory)
    .max(maxPathLength, directory)
    .regex(directoryPath, directory)
    .nullish()
    .describe("Directory of the program. Default: TOOLS_EXECUTABLE_DIR, which it is below."),
  tools: providedField,
  resource_limits: z
    .looseObject(
      Object.fromEntries(
        Object.keys(limitKeys).map((key) => [
          key,
          z.preprocess(unquoted, z.number(bound).gt(0, bound)).nullish(),
        ]),
      ),
      limitMap,
    )
    .nullish()
    .describe("Limits by the names of the Go runtime. `limits` goes before them."),
  module: z.null(notUsed).optional(),
  function: z.null(notUsed).optional(),
  class_name: z.null(notUsed).optional(),
  package: z.null(notUsed).optional(),
  version: z.null(notUsed).optional(),
  requirements: z.null(notUsed).optional(),
  requirements_file: z.null(notUsed).optional(),
  lockfile: z.null(notUsed).optional(),
  install_scripts: z.null(notUsed).optional(),
  python: z.null(notUsed).optional(),
  node: z.null(notUsed).optional(),
};

/** Limits of `resource_limits` in their own units, within what this worker accepts. */
export function toResourceLimits(entry: Readonly<Record<string, unknown>>): Partial<Limits> {
  const fields = entry["resource_limits"];
  if (!isRecord(fields)) return {};
  const named = Object.entries(limitKeys).flatMap(([key, name]) => {
    const value = fields[key];
    if (typeof value !== "number") return [];
    const { min, max, scale } = limitFacts[name];
    return [[name, Math.min(max, Math.max(min, Math.round(value))) * scale] as const];
  });
  return Object.fromEntries(named);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
