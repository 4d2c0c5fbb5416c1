/**
 * The command lines of `harness network`.
 */
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { parseNonEmpty, parseToolName } from "../options/option-values.ts";
import type { ExplainOptions } from "./explain-tools.ts";

/** Adds `network` with its command. */
export function addNetwork(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("network")
    .description("Say what tools may reach.")
    .command("explain")
    .description("Say in words what a tool of a manifest may reach, or each of them.")
    .argument("[name]", "name of the tool (default: all)", parseToolName)
    .option(
      "--manifest <file>",
      "the manifest (default: MANIFEST_PATH, else as for dev)",
      parseNonEmpty,
    )
    .option(
      "--profiles <file>",
      "profiles of your own (default: SANDBOX_PROFILES_FILE, else the built-in ones)",
      parseNonEmpty,
    )
    .option("--json", "print each tool as one line of JSON")
    .addHelpText("after", explainHelp)
    .action(async (name: string | undefined, options: ExplainOptions) => {
      const { explainTools } = await import("./explain-tools.ts");
      finish(await explainTools(name, options, context));
    });
}

const explainHelp = `
It reads the files, CREDENTIAL_SOURCES and the variables SANDBOX_… of this environment, opens no sandbox and makes no connection.

Exit codes: 0 explained, 2 usage or a file that cannot be used.

Examples:
  harness network explain weather
  harness network explain --manifest my-tools/manifest.yaml --profiles profiles.yaml --json`;
