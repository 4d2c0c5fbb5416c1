/**
 * The fields of an entry for programs: it runs source text that calls bring.
 */
import { z } from "zod";
import { type ProgramLanguage, programLanguages } from "../../protocol/tool-calls/program.ts";
import { maxCodeBytes } from "../../protocol/tool-calls/program-limits.ts";
import type { JsonObject } from "../../support/json/json.ts";
import { accepts } from "../../support/text/expectation.ts";
import { interpreterField } from "./interpreter.ts";
import { nodePackageFields, pythonPackageFields } from "./packages.ts";

/** Profile of programs whose entry names none. */
export const programProfile = "restrictive";
/** Description of an entry that has none. */
export const programDescription =
  "Runs a program in a sandbox. Its value is that of __out, else that of its last expression.";

const runtime = accepts("one of python, node, executable, code");
const languageList = accepts(`a list of ${programLanguages.join(", ")}`);
const notUsed = { error: "not used with runtime code" };
const oneInterpreter = {
  error: "allowed only with languages of one interpreter: [python], or typescript and javascript",
};

/** Fields of programs of every language. Their arguments and results are always the same. */
export const programShape = {
  runtime: z.literal("code", runtime).describe("The entry runs programs that calls bring."),
  languages: z
    .array(z.enum(programLanguages, languageList), languageList)
    .min(1, languageList)
    .nullish()
    .describe(`Languages of programs. Default: ${programLanguages.join(", ")}.`),
  module: z.null(notUsed).optional(),
  function: z.null(notUsed).optional(),
  class_name: z.null(notUsed).optional(),
  tools: z.null(notUsed).optional(),
  parameters: z.null(notUsed).optional(),
  output_schema: z.null(notUsed).optional(),
  config_schema: z.null(notUsed).optional(),
  artifact_params: z.null(notUsed).optional(),
  validate: z.null(notUsed).optional(),
  coerce: z.null(notUsed).optional(),
};

/** What programs import besides, and what runs them, by the interpreters of their languages. */
export const programPackages = {
  python: {
    ...pythonPackageFields,
    python: interpreterField("3.12").describe("Python that runs the programs."),
    node: z.null(oneInterpreter).optional(),
  },
  node: {
    ...nodePackageFields,
    node: interpreterField("24").describe("Node that runs the programs."),
    python: z.null(oneInterpreter).optional(),
  },
  both: {
    package: z.null(oneInterpreter).optional(),
    version: z.null(oneInterpreter).optional(),
    requirements: z.null(oneInterpreter).optional(),
    requirements_file: z.null(oneInterpreter).optional(),
    lockfile: z.null(oneInterpreter).optional(),
    install_scripts: z.null(oneInterpreter).optional(),
    python: z.null(oneInterpreter).optional(),
    node: z.null(oneInterpreter).optional(),
  },
};

/** The interpreters that an entry's languages need, whether they are valid or not. */
export function interpretersOf(languages: unknown): keyof typeof programPackages {
  if (!Array.isArray(languages) || languages.length === 0) return "both";
  if (languages.every((language) => language === "python")) return "python";
  return languages.includes("python") ? "both" : "node";
}

/** JSON Schema of a program's arguments. */
export function programParameters(languages: readonly ProgramLanguage[]): JsonObject {
  const [only] = languages;
  const isOne = languages.length === 1;
  return {
    type: "object",
    properties: {
      code: {
        type: "string",
        maxLength: maxCodeBytes,
        description: "The program. It may await at its top level.",
      },
      language: {
        type: "string",
        enum: [...languages],
        ...(isOne && only !== undefined && { default: only }),
      },
      inputs: { type: "object", description: "What the program finds as `inputs`." },
      stream: {
        type: "boolean",
        description: "Whether what it prints is sent as statuses while it runs.",
      },
    },
    required: isOne ? ["code"] : ["code", "language"],
    additionalProperties: false,
  };
}
