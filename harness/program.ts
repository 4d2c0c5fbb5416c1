/**
 * The command line of the harness: commands, options, help, and exit codes of failures.
 */
import { inspect } from "node:util";
import { Command, CommanderError, Option } from "commander";
import { StoreError } from "../worker/artifacts/store.ts";
import { BrokerError } from "../worker/broker/broker.ts";
import { namespaceProblem } from "../worker/protocol/topics.ts";
import { CommandError, type Context, Interruption, UsageError, exit } from "./context.ts";
import { demo } from "./demo.ts";
import { type DevBrokerOptions, runDevBroker } from "./dev-broker-command.ts";
import { type InvokeOptions, invoke } from "./invoke.ts";
import { type ListenOptions, listen } from "./listen.ts";
import {
  defaultProfile,
  defaultSessionId,
  defaultTimeoutSeconds,
  defaultUserId,
} from "./messages.ts";
import {
  collectAssignment,
  defaultPort,
  parseBrokerAddress,
  parseJsonObject,
  parseNamespace,
  parseNonEmpty,
  parsePort,
  parseSeconds,
  parseToolName,
} from "./option-values.ts";
import { packageVersion } from "./package.ts";
import { printable } from "./screen.ts";

/** Profiles of the design document, section 9.1. */
const profiles = ["restrictive", "standard", "permissive"];

/** The namespace when neither option nor environment has one. */
const fallbackNamespace = "harness";

const loopback = "127.0.0.1";

/** Runs a command line, without the program's name. Returns the exit code; never throws. */
export async function run(argv: readonly string[], context: Context): Promise<number> {
  let exitCode: number = exit.success;
  const program = createProgram(context, (code) => (exitCode = code));
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    return explain(error, context);
  }
}

/** Tells what went wrong, and returns the exit code for it. */
function explain(error: unknown, { signal, err }: Context): number {
  if (signal.aborted && signal.reason instanceof Interruption) return signal.reason.exitCode;
  if (error instanceof CommanderError) {
    // Commander has said everything already; help and version are no failures.
    return error.exitCode === 0 ? exit.success : exit.usage;
  }
  if (error instanceof UsageError) {
    err.line(printable(`error: ${error.message}`));
    return exit.usage;
  }
  const isForeseen = [CommandError, BrokerError, StoreError].some((kind) => error instanceof kind);
  const text = isForeseen && error instanceof Error ? error.message : inspect(error);
  err.line(printable(`error: ${text}`));
  return exit.failure;
}

function createProgram(context: Context, finish: (exitCode: number) => void): Command {
  const program = new Command("harness")
    .description("What stands on the other side of a worker's broker: calls its tools and listens.")
    .version(packageVersion())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.out.write(text),
      writeErr: (text) => context.err.write(text),
    })
    .showHelpAfterError("(--help shows what is accepted)");
  addInvoke(program, context, finish);
  addDevBroker(program, context, finish);
  addListen(program, context, finish);
  addDemo(program, context, finish);
  return program;
}

function addInvoke(program: Command, context: Context, finish: (exitCode: number) => void): void {
  program
    .command("invoke")
    .description("Call a tool as an agent does, and print its result.")
    .addOption(
      new Option("--tool <name>", "tool to call").argParser(parseToolName).makeOptionMandatory(),
    )
    .option("--args <json>", "arguments, a JSON object", parseJsonObject, {})
    .addOption(
      filesOption(
        "--artifact <param=file[:version]>",
        "save FILE in the artifact store and pass its new version; where there is no local file of that name, NAME:VERSION passes a version that the store has already; repeat for a list",
      ),
    )
    .addOption(
      filesOption(
        "--preload <param=file>",
        "send FILE's content inside the request; repeat for a list",
      ),
    )
    .option("--config <json>", "tool configuration, a JSON object", parseJsonObject, {})
    .option(
      "--timeout <seconds>",
      "time for the tool, and for a worker to appear",
      parseSeconds,
      defaultTimeoutSeconds,
    )
    .addOption(
      new Option("--profile <name>", "sandbox profile to ask for")
        .choices(profiles)
        .default(defaultProfile),
    )
    .option("--user <id>", "user on whose behalf", parseNonEmpty, defaultUserId)
    .option("--session <id>", "session of that user", parseNonEmpty, defaultSessionId)
    .addOption(namespaceOption(context))
    .option("--out <dir>", "write the artifacts that the tool creates into this directory")
    .option("--json", "print the whole response as one line of JSON")
    .addOption(brokerOption("use a running DevBroker instead of an own one"))
    .option(
      "--wait-for-worker",
      "with --broker: wait until a worker answers for the tool (an own broker always waits)",
    )
    .addOption(hostOption().conflicts("broker"))
    .addOption(portOption().conflicts("broker"))
    .addHelpText("after", invokeHelp)
    .action(async (options: InvokeOptions) => {
      checkNamespace(options.namespace);
      finish(await invoke(options, context));
    });
}

const invokeHelp = `
Arguments of artifact parameters that --args does not name are set to the filename, or to the list of
filenames. The artifact store is the worker's: give both the same ARTIFACT_* variables.

Exit codes: 0 result, 1 error of tool, worker or broker, 2 usage, 124 no answer or tool timed out, 130 Ctrl-C.

Examples:
  harness invoke --tool echo_tool --args '{"message": "hello"}'
  harness invoke --tool process_file --preload input_file=README.md
  ARTIFACT_SERVICE_TYPE=filesystem ARTIFACT_BASE_PATH=/tmp/artifacts \\
    harness invoke --tool process_file --artifact input_file=README.md --out results`;

function addDevBroker(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("dev-broker")
    .description("Run a DevBroker until Ctrl-C, and show who subscribes to what.")
    .addOption(hostOption())
    .addOption(portOption())
    .addOption(namespaceOption(context))
    .addHelpText("after", "\nExample:\n  harness dev-broker --port 55554")
    .action(async (options: DevBrokerOptions) => {
      checkNamespace(options.namespace);
      finish(await runDevBroker(options, context));
    });
}

function addListen(program: Command, context: Context, finish: (exitCode: number) => void): void {
  program
    .command("listen")
    .description("Print the messages of a running DevBroker as they come, secrets included.")
    .argument("[pattern]", "topics; * is one level, > is all that follow", parseNonEmpty, ">")
    .addOption(
      brokerOption("the DevBroker").default(
        { host: loopback, port: defaultPort },
        `${loopback}:${defaultPort}`,
      ),
    )
    .option("--json", "print each message as one line of JSON")
    .addHelpText("after", "\nExample:\n  harness listen 'ed_test/a2a/v1/sam_remote_tool/>' --json")
    .action(async (pattern: string, options: ListenOptions) =>
      finish(await listen(pattern, options, context)),
    );
}

function addDemo(program: Command, context: Context, finish: (exitCode: number) => void): void {
  program
    .command("demo")
    .description("Start a broker and a worker, call the example tools, and show what happens.")
    .addHelpText("after", "\nExample:\n  harness demo")
    .action(async () => finish(await demo(context)));
}

function filesOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(collectAssignment).default([], "none");
}

function namespaceOption({ environment }: Context): Option {
  const fromEnvironment = environment["SAM_NAMESPACE"] || undefined;
  return new Option("--namespace <name>", "namespace, spelled exactly as the worker's")
    .argParser(parseNamespace)
    .default(
      fromEnvironment ?? fallbackNamespace,
      fromEnvironment ? "SAM_NAMESPACE" : fallbackNamespace,
    );
}

/** The namespace of the environment has gone through no parser. */
function checkNamespace(namespace: string): void {
  const problem = namespaceProblem(namespace);
  if (problem !== undefined) throw new UsageError(`SAM_NAMESPACE "${namespace}" ${problem}`);
}

function brokerOption(description: string): Option {
  return new Option("--broker <host:port>", description).argParser(parseBrokerAddress);
}

function hostOption(): Option {
  return new Option("--host <address>", "address the own broker listens on")
    .argParser(parseNonEmpty)
    .default(loopback);
}

function portOption(): Option {
  return new Option("--port <port>", "port the own broker listens on; 0 takes a free one")
    .argParser(parsePort)
    .default(defaultPort);
}
