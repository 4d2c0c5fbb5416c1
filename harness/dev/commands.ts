/**
 * The command lines of those that bring a DevBroker along: `harness dev`, `demo` and `dev-broker`.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Context } from "../context.ts";
import type { DemoOptions } from "../demo/demo.ts";
import type { DevBrokerOptions } from "../dev-broker/dev-broker-command.ts";
import { defaultConsolePort, demoStoreKinds } from "../options/defaults.ts";
import { parseNonEmpty, parsePort } from "../options/option-values.ts";
import { checkNamespace, hostOption, namespaceOption, portOption } from "../options/options.ts";
import type { DevOptions } from "./dev.ts";

/** Adds `dev`. */
export function addDev(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("dev")
    .description("Run a DevBroker and a worker until Ctrl-C, and show what the tools print.")
    .option(
      "--tools <dir>",
      "serve DIR/manifest.yaml with the tools in DIR/python, DIR/node and DIR/executable, or in DIR itself where it has none of them (default: the directory here that has a manifest, or tools/, else the example tools)",
      parseNonEmpty,
    )
    .addOption(hostOption())
    .addOption(portOption())
    .addOption(namespaceOption(context))
    .addHelpText("after", devHelp)
    .action(async (options: DevOptions) => {
      checkNamespace(options.namespace);
      const { dev } = await import("./dev.ts");
      finish(await dev(options, context));
    });
}

/** Adds `console`. */
export function addConsole(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("console")
    .description("Run a DevBroker and a worker, and show both in a browser, until Ctrl-C.")
    .option("--tools <dir>", "the tools to serve, as `harness dev` finds them", parseNonEmpty)
    .option(
      "--console-port <number>",
      "port of the console on this machine",
      parseConsolePort,
      defaultConsolePort,
    )
    .addOption(hostOption())
    .addOption(portOption())
    .addOption(namespaceOption(context))
    .addHelpText("after", consoleHelp)
    .action(async (options: DevOptions) => {
      checkNamespace(options.namespace);
      const { dev } = await import("./dev.ts");
      finish(await dev(options, context));
    });
}

/** The page has to know it: a worker without a port has no console. */
function parseConsolePort(text: string): number {
  const port = parsePort(text);
  if (port === 0) throw new InvalidArgumentError("It has to be 1 to 65535.");
  return port;
}

const consoleHelp = `
It prints a link with a token, which CONSOLE_TOKEN replaces. Everything else is as with harness dev.

Examples:
  harness console
  harness console --tools my-tools --console-port 9000`;

const devHelp = `
A change of the manifest or of a tool needs no restart: it holds from the next call on. Every variable of the worker
counts, such as MANIFEST_PATH, TOOLS_PYTHON_DIR, TOOLS_NODE_DIR and LOG_LEVEL.

Examples:
  harness dev
  harness dev --tools my-tools`;

/** Adds `demo`. */
export function addDemo(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("demo")
    .description("Start a broker and a worker, call the example tools, and show what happens.")
    .addOption(
      new Option("--store <kind>", "artifact store of worker and harness")
        .choices(demoStoreKinds)
        .default(demoStoreKinds[0]),
    )
    .option("--console", "show the calls in a browser, and keep the worker until Ctrl-C")
    .addHelpText(
      "after",
      "\nExamples:\n  harness demo\n  harness demo --console\n  harness demo --store s3\n  harness demo --store gcs",
    )
    .action(async (options: DemoOptions) => {
      const { demo } = await import("../demo/demo.ts");
      finish(await demo(options, context));
    });
}

/** Adds `dev-broker`. */
export function addDevBroker(
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
      const { runDevBroker } = await import("../dev-broker/dev-broker-command.ts");
      finish(await runDevBroker(options, context));
    });
}
