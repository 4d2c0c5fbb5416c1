/**
 * The command line of the harness: commands, options, help, and exit codes of failures. Only the
 * command that is typed is loaded, which is most of the time that a quick one takes.
 */
import { inspect } from "node:util";
import { Command, CommanderError, Option } from "commander";
import { NotDeletedError, StoreError } from "../worker/artifacts/store.ts";
import { BrokerError } from "../worker/broker/broker.ts";
import {
  CommandError,
  type Context,
  Interruption,
  UsageError,
  exit,
  withCauses,
} from "./context.ts";
import { addArtifact } from "./artifact/commands.ts";
import { addAgentYaml } from "./discovery/commands.ts";
import { defaultPort, demoStoreKinds } from "./options/defaults.ts";
import type { DemoOptions } from "./demo/demo.ts";
import type { DevOptions } from "./dev/dev.ts";
import type { DevBrokerOptions } from "./dev-broker/dev-broker-command.ts";
import type { InvokeOptions } from "./invoke/invoke.ts";
import type { ListenOptions } from "./invoke/listen.ts";
import { parseNonEmpty, parsePort, parseToolName } from "./options/option-values.ts";
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
} from "./options/options.ts";
import { addEnv } from "./packages/commands.ts";
import { packageVersion } from "./package.ts";
import { printable } from "./invoke/screen.ts";
import type { FakeGcsCommandOptions } from "./fake-gcs-command.ts";
import type { FakeS3CommandOptions } from "./fake-s3-command.ts";
import type { SmfBrokerCommandOptions } from "./smf-broker-command.ts";
import { addTool, addTools } from "./tool/commands.ts";

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
function explain(error: unknown, context: Context): number {
  const { signal, err } = context;
  if (error instanceof NotDeletedError) {
    const exitCode = explain(error.cause, context);
    err.line(`version ${error.saved.version} of that artifact may exist all the same`);
    return exitCode;
  }
  if (signal.aborted && signal.reason instanceof Interruption) return signal.reason.exitCode;
  if (error instanceof CommanderError) {
    // Commander has said everything already; help and version are no failures.
    return error.exitCode === 0 ? exit.success : exit.usage;
  }
  if (error instanceof UsageError) {
    err.line(printable(`error: ${error.message}`));
    return exit.usage;
  }
  const isForeseen = [CommandError, BrokerError].some((kind) => error instanceof kind);
  const text =
    error instanceof StoreError
      ? // What callers of a worker must not know, the user of the store has to.
        withCauses(error).join("\n  because: ")
      : isForeseen && error instanceof Error
        ? error.message
        : inspect(error);
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
  addSmfBroker(program, context, finish);
  addFakeS3(program, context, finish);
  addFakeGcs(program, context, finish);
  addListen(program, context, finish);
  addDemo(program, context, finish);
  addDev(program, context, finish);
  addTool(program, context, finish);
  addTools(program, context, finish);
  addAgentYaml(program, context, finish);
  addArtifact(program, context, finish);
  addEnv(program, context, finish);
  return program;
}

function addInvoke(program: Command, context: Context, finish: (exitCode: number) => void): void {
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
      const { invoke } = await import("./invoke/invoke.ts");
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
      const { runDevBroker } = await import("./dev-broker/dev-broker-command.ts");
      finish(await runDevBroker(options, context));
    });
}

function addSmfBroker(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("smf-broker")
    .description(
      "Run a Solace broker for tests until Ctrl-C, and show who subscribes and consumes. It checks no passwords.",
    )
    .addOption(hostOption())
    .addOption(portOption())
    .option(
      "--ws-port <port>",
      "listen for WebSockets too, on this port; 0 takes a free one",
      parsePort,
    )
    .option("--tls-cert <file>", "speak TLS, with the certificate in this PEM file", parseNonEmpty)
    .option("--tls-key <file>", "its key", parseNonEmpty)
    .addHelpText("after", "\nExample:\n  harness smf-broker --port 55554")
    .action(async (options: SmfBrokerCommandOptions) => {
      const { runSmfBroker } = await import("./smf-broker-command.ts");
      finish(await runSmfBroker(options, context));
    });
}

function addFakeS3(program: Command, context: Context, finish: (exitCode: number) => void): void {
  program
    .command("fake-s3")
    .description("Run an S3 server for trials until Ctrl-C, with one bucket in memory.")
    .option("--port <port>", "port it listens on; 0 takes a free one", parsePort, 9000)
    .option("--bucket <name>", "the bucket", parseNonEmpty, "artifacts")
    .option("--without-conditions", "ignore If-None-Match and If-Match, as old servers do", false)
    .addHelpText("after", "\nExample:\n  harness fake-s3 --port 9000")
    .action(async (options: FakeS3CommandOptions) => {
      const { runFakeS3 } = await import("./fake-s3-command.ts");
      finish(await runFakeS3(options, context));
    });
}

function addFakeGcs(program: Command, context: Context, finish: (exitCode: number) => void): void {
  program
    .command("fake-gcs")
    .description("Run a Cloud Storage server for trials until Ctrl-C, with one bucket in memory.")
    .option("--port <port>", "port it listens on; 0 takes a free one", parsePort, 9001)
    .option("--bucket <name>", "the bucket", parseNonEmpty, "artifacts")
    .addHelpText("after", "\nExample:\n  harness fake-gcs --port 9001")
    .action(async (options: FakeGcsCommandOptions) => {
      const { runFakeGcs } = await import("./fake-gcs-command.ts");
      finish(await runFakeGcs(options, context));
    });
}

function addListen(program: Command, context: Context, finish: (exitCode: number) => void): void {
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
      const { listen } = await import("./invoke/listen.ts");
      finish(await listen(pattern, options, context));
    });
}

function addDemo(program: Command, context: Context, finish: (exitCode: number) => void): void {
  program
    .command("demo")
    .description("Start a broker and a worker, call the example tools, and show what happens.")
    .addOption(
      new Option("--store <kind>", "artifact store of worker and harness")
        .choices(demoStoreKinds)
        .default(demoStoreKinds[0]),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  harness demo\n  harness demo --store s3\n  harness demo --store gcs",
    )
    .action(async (options: DemoOptions) => {
      const { demo } = await import("./demo/demo.ts");
      finish(await demo(options, context));
    });
}

function addDev(program: Command, context: Context, finish: (exitCode: number) => void): void {
  program
    .command("dev")
    .description("Run a DevBroker and a worker until Ctrl-C, and show what the tools print.")
    .option(
      "--tools <dir>",
      "serve DIR/manifest.yaml with the tools in DIR/python and DIR/node, or in DIR itself where it has neither (default: the directory here that has a manifest, or tools/, else the example tools)",
      parseNonEmpty,
    )
    .addOption(hostOption())
    .addOption(portOption())
    .addOption(namespaceOption(context))
    .addHelpText("after", devHelp)
    .action(async (options: DevOptions) => {
      checkNamespace(options.namespace);
      const { dev } = await import("./dev/dev.ts");
      finish(await dev(options, context));
    });
}

const devHelp = `
A change of the manifest or of a tool needs no restart: it holds from the next call on. Every variable of the worker
counts, such as MANIFEST_PATH, TOOLS_PYTHON_DIR, TOOLS_NODE_DIR and LOG_LEVEL.

Examples:
  harness dev
  harness dev --tools my-tools`;
