/**
 * The command lines of `harness tool stubs` and `harness tool prompt`.
 */
import { type Command, Option } from "commander";
import type { Context } from "../../context.ts";
import { parseNonEmpty, parseToolName } from "../../options/option-values.ts";
import { stubLanguages } from "./languages.ts";
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
        "TypeScript or Python (default: that of the tool)",
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
The modules of the called tools are imported in sandboxes; no tool is called. The file is NAME_tools.d.ts or NAME_tools.pyi; stubs that are there are written again.

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
The text says how code calls tools, and names those in scope, a line each within 4,000 characters. The modules of the called tools are imported in sandboxes; no tool is called.

Exit codes: 0 printed, 1 the tool is not served, 2 usage.

Example:
  harness tool prompt report --dir my-tools`;
