/**
 * The command line of `harness queues`.
 */
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { parseSeconds, parseToolName } from "../option-values.ts";
import { checkNamespace, namespaceOption } from "../options.ts";
import type { PruneOptions } from "./prune.ts";
import { quietSeconds } from "./quiet.ts";

/** Twice the longest time for which a worker leaves a queue alone that it could not have. */
const defaultAfterSeconds = 60;

/** Adds `queues` with its commands. */
export function addQueues(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("queues")
    .description("Look after the queues that workers leave on a Solace broker.")
    .command("prune")
    .description(
      "List the queues of a namespace, and remove those that nobody serves and that hold no call.",
    )
    .option(
      "--tool <name>",
      "only the queue of this tool; repeat for more",
      (name: string, previous: readonly string[]) => [...previous, parseToolName(name)],
      [],
    )
    .option("--yes", "remove; without it nothing is changed")
    .option(
      "--after <seconds>",
      "with --yes: how long a queue has to be unused",
      parseSeconds,
      defaultAfterSeconds,
    )
    .option("--force", "with --tool: remove it also when it is served or calls wait in it")
    .option(
      "--while-calls-run",
      "with --tool: remove it also while calls of others run, when a full worker may have let it go",
    )
    .option("--json", "print each queue as one line of JSON")
    .addOption(namespaceOption(context))
    .addHelpText("after", help)
    .action(async (options: PruneOptions) => {
      checkNamespace(options.namespace);
      const { prune } = await import("./prune.ts");
      finish(await prune(options, context));
    });
}

const help = `
SOLACE_SEMP_URL, SOLACE_SEMP_USERNAME and SOLACE_SEMP_PASSWORD, or SOLACE_SEMP_PASSWORD_FILE with the name of a file that
holds it, say where the broker is managed and by whom, SOLACE_VPN in which message VPN (default: default). A worker that is down for the moment serves nothing: look at the list first, and
say --after a longer time than a worker takes to come back. A worker whose places are all taken lets its other queues go:
nothing is removed unless there are ${quietSeconds} seconds within --after in which no call of the namespace runs.

Examples:
  harness queues prune --namespace ed_test
  harness queues prune --namespace ed_test --tool old_tool --yes`;
