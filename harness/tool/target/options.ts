/**
 * The command line's words for a target, which `tool run` and `tool describe` share.
 */
import { Option } from "commander";
import { defaultProfile } from "../../options/defaults.ts";
import { parseNonEmpty, parseToolName } from "../../options/option-values.ts";

export const targetHelp =
  "file and function or class, as in words.py:count_words; a program; or the directory of a manifest";

export function toolOption(): Option {
  return new Option(
    "--tool <name>",
    "the tool that is meant, of a provider class, a program or a manifest with several",
  ).argParser(parseToolName);
}

export function targetProfileOption(description: string): Option {
  return new Option(
    "--profile <name>",
    `${description} (default: ${defaultProfile}, or the manifest's)`,
  ).argParser(parseNonEmpty);
}

export function classOption(): Option {
  return new Option(
    "--class",
    "the name is that of a Python class although the file does not define it",
  );
}

export function toolsDirOption(): Option {
  return new Option(
    "--tools-dir <dir>",
    "directory that the sandbox sees and modules are loaded from (default: the file's)",
  ).argParser(parseNonEmpty);
}

export function envOption(): Option {
  return new Option("--env <name>", "variable of this environment that the tool may see; repeat")
    .argParser((name: string, previous: readonly string[]) => [...previous, parseNonEmpty(name)])
    .default([], "none");
}
