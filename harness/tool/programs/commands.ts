/**
 * The command lines of `harness tool stubs`, `harness tool prompt` and `harness program`.
 */
import { type Command, Option } from "commander";
import type { Context } from "../../context.ts";
import { parseArguments, parseNonEmpty, parseToolName } from "../../options/option-values.ts";
import { jsonOption, timeoutOption } from "../../options/options.ts";
import { stubLanguages } from "./languages.ts";
import type { RunProgramOptions } from "./run-program.ts";
import type { StubsOptions } from "./stubs.ts";
import type { ManifestFlags } from "./tools-in-scope.ts";

const entryHelp = "an entry of the manifest that has a gateway";

function dirOption(): Option {
  return new Option(
    "--dir <dir>",
    "directory of the manifest (default: this one if it has a manifest, else tools)",
  ).argParser(parseNonEmpty);
}

/** Adds `tool stubs`. */
export function addStubs(
  tool: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  tool
    .command("stubs")
    .description("Write the types of the tools that a tool may call by its gateway.")
    .argument("<name>", entryHelp, parseToolName)
    .addOption(
      new Option(
        "--language <language>",
        "TypeScript or Python (default: those of the tool)",
      ).choices(stubLanguages),
    )
    .addOption(
      new Option("--out <dir>", "directory of the file").argParser(parseNonEmpty).default("."),
    )
    .addOption(dirOption())
    .addHelpText("after", stubsHelp)
    .action(async (name: string, options: StubsOptions) => {
      const { writeStubs } = await import("./stubs.ts");
      finish(await writeStubs(name, options, context));
    });
}

const stubsHelp = `
The modules of the called tools are imported in sandboxes; no tool is called.
The file is NAME_tools.d.ts or NAME_tools.pyi; stubs that are there are written again.

Exit codes: 0 written, 1 the tool is not served, 2 usage.

Examples:
  harness tool stubs report
  harness tool stubs report --language python --out types --dir my-tools`;

/** Adds `tool prompt`. */
export function addPrompt(
  tool: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  tool
    .command("prompt")
    .description("Print what an agent's YAML has to say of a tool that calls tools by its gateway.")
    .argument("<name>", entryHelp, parseToolName)
    .addOption(dirOption())
    .addHelpText("after", promptHelp)
    .action(async (name: string, options: ManifestFlags) => {
      const { printPrompt } = await import("./prompt.ts");
      finish(await printPrompt(name, options, context));
    });
}

const promptHelp = `
The text says how code calls tools, and names those in scope, a line each within 4,000
characters. The modules of the called tools are imported in sandboxes; no tool is called.

Exit codes: 0 printed, 1 the tool is not served, 2 usage.

Example:
  harness tool prompt report --dir my-tools`;

/** Adds `program` with its command. */
export function addProgram(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("program")
    .description("Run programs that call tools, without a broker.")
    .command("run")
    .description("Run a program once, in the sandbox that a worker would make for it.")
    .argument(
      "<file>",
      "Python (.py), TypeScript (.ts, .mts) or JavaScript (.js, .mjs)",
      parseNonEmpty,
    )
    .addOption(
      new Option(
        "--with <manifest>",
        "manifest whose tools it may call, or its directory (default: it calls none)",
      ).argParser(parseNonEmpty),
    )
    .addOption(
      new Option(
        "--as <name>",
        "entry of the manifest that runs it (default: the one with runtime code; without any, all tools that allow programs can be called)",
      ).argParser(parseToolName),
    )
    .addOption(
      new Option(
        "--inputs <json>",
        "what it finds as inputs, a JSON object; @FILE takes it from a file, - from standard input",
      )
        .argParser(parseArguments)
        .default({}),
    )
    .addOption(timeoutOption("time for the program"))
    .addOption(jsonOption())
    .addHelpText("after", programHelp)
    .action(async (file: string, options: RunProgramOptions) => {
      const { runProgram } = await import("./run-program.ts");
      finish(await runProgram(file, options, context));
    });
}

const programHelp = `
The value goes to standard output; what it prints and displays, its calls of tools and everything else to standard error.

Exit codes: 0 value, 1 error of the program or the sandbox, 2 usage, 124 it ran out of time, 130 Ctrl-C.

Examples:
  harness program run report.py
  harness program run report.ts --with my-tools --inputs '{"region": "West"}'
  harness program run report.py --with my-tools --as run_program`;
