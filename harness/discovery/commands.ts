/**
 * The command line of `harness agent-yaml`.
 */
import { type Command, Option } from "commander";
import type { Context } from "../context.ts";
import { parseSeconds, parseToolName } from "../options/option-values.ts";
import { brokerOption, checkNamespace, configOption, namespaceOption } from "../options/options.ts";
import type { AgentYamlOptions } from "./agent-yaml.ts";

/** Seconds that a worker gets to describe a tool. */
const answerSeconds = 30;

/** Adds `agent-yaml`. */
export function addAgentYaml(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("agent-yaml")
    .description("Print what the YAML of an agent has to say of a tool, by a running worker.")
    .argument("<tool>", "name of the tool", parseToolName)
    .addOption(brokerOption("ask the workers of this broker").makeOptionMandatory())
    .addOption(namespaceOption(context))
    .addOption(configOption())
    .addOption(
      new Option("--timeout <seconds>", "time for an answer")
        .argParser(parseSeconds)
        .default(answerSeconds),
    )
    .addHelpText(
      "after",
      "\nExample:\n  harness agent-yaml weather --broker 127.0.0.1 --namespace ed_test >> agent.yaml",
    )
    .action(async (tool: string, options: AgentYamlOptions) => {
      checkNamespace(options.namespace);
      const { printAgentYaml } = await import("./agent-yaml.ts");
      finish(await printAgentYaml(tool, options, context));
    });
}
