/**
 * The command lines of `harness invoke` and `harness listen`.
 */
import { type Command, Option } from "commander";
import type { Context } from "../context.ts";
import { defaultPort } from "../options/defaults.ts";
import { parseNonEmpty, parseToolName, parseTraceparent } from "../options/option-values.ts";
import {
  argsOption,
  brokerOption,
  checkNamespace,
  configOption,
  filesOption,
  hostOption,
  jsonOption,
  loopback,
  namespaceOption,
  outOption,
  portOption,
  profileOption,
  sessionOption,
  timeoutOption,
  userOption,
} from "../options/options.ts";
import type { InvokeOptions } from "./invoke.ts";
import type { ListenOptions } from "./listen.ts";

/** Adds `invoke`. */
export function addInvoke(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("invoke")
    .description("Call a tool as an agent does, and print its result.")
    .addOption(
      new Option("--tool <name>", "tool to call").argParser(parseToolName).makeOptionMandatory(),
    )
    .addOption(argsOption())
    .addOption(
      filesOption(
        "--artifact <param=file[:version]>",
        "save FILE in the artifact store and pass its new version; where there is no local file of that name, NAME:VERSION passes a version that the store has already; repeat for a list, PARAM[]=… for a list of one",
      ),
    )
    .addOption(
      filesOption(
        "--preload <param=file>",
        "send FILE's content inside the request; repeat for a list, PARAM[]=FILE for a list of one",
      ),
    )
    .addOption(configOption())
    .addOption(timeoutOption("time for the tool, and for a worker to appear"))
    .addOption(profileOption("sandbox profile to ask for"))
    .addOption(userOption())
    .addOption(sessionOption())
    .addOption(
      new Option("--traceparent <value>", "W3C trace context of the call").argParser(
        parseTraceparent,
      ),
    )
    .addOption(namespaceOption(context))
    .addOption(outOption())
    .addOption(jsonOption())
    .option("--logs", "show what the tool prints, if the worker has TOOL_LOGS=caller")
    .addOption(brokerOption("use this broker"))
    .option(
      "--wait-for-worker",
      "with --broker: wait until a worker answers for the tool (without it, that is always so)",
    )
    .addOption(hostOption().conflicts("broker"))
    .addOption(portOption().conflicts("broker"))
    .addHelpText("after", invokeHelp)
    .action(async (options: InvokeOptions) => {
      checkNamespace(options.namespace);
      const { invoke } = await import("./invoke.ts");
      finish(await invoke(options, context));
    });
}

const invokeHelp = `
Without --broker it calls at the DevBroker that listens on --host and --port, such as that of "harness dev"; where there
is none it brings one along.

Arguments of artifact parameters that --args does not name are set to the filename, or to the list of
filenames. The artifact store is the worker's: give both the same ARTIFACT_* variables.

Exit codes: 0 result, 1 error of tool, worker or broker, 2 usage, 124 no answer or tool timed out, 130 Ctrl-C.

Examples:
  harness invoke --tool echo_tool --args '{"message": "hello"}'
  harness invoke --tool echo_tool --args '{"message": "hello"}' --logs
  harness invoke --tool process_file --preload input_file=README.md
  ARTIFACT_SERVICE_TYPE=filesystem ARTIFACT_BASE_PATH=/tmp/artifacts \\
    harness invoke --tool process_file --artifact input_file=README.md --out results`;

/** Adds `listen`. */
export function addListen(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("listen")
    .description("Print the messages of a running broker as they come, secrets included.")
    .argument("[pattern]", "topics; * is one level, > is all that follow", parseNonEmpty, ">")
    .addOption(brokerOption("the broker").default(`${loopback}:${defaultPort}`))
    .addOption(namespaceOption(context))
    .option("--json", "print each message as one line of JSON")
    .addHelpText("after", "\nExample:\n  harness listen 'ed_test/a2a/v1/sam_remote_tool/>' --json")
    .action(async (pattern: string, options: ListenOptions) => {
      checkNamespace(options.namespace);
      const { listen } = await import("./listen.ts");
      finish(await listen(pattern, options, context));
    });
}
