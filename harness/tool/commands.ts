/**
 * The command lines of `harness tool` and `harness tools`.
 */
import { type Command, Option } from "commander";
import type { Context } from "../context.ts";
import {
  parseNewToolName,
  parseNonEmpty,
  parsePort,
  parseSeconds,
  parseToolName,
} from "../options/option-values.ts";
import {
  argsOption,
  brokerOption,
  checkNamespace,
  configOption,
  filesOption,
  jsonOption,
  namespaceOption,
  outOption,
  timeoutOption,
} from "../options/options.ts";
import { addPrompt, addStubs } from "./programs/commands.ts";
import type { ToolDescribeOptions } from "./describe/describe.ts";
import type { ToolNewOptions } from "./new/new.ts";
import { allShapes } from "./new/shapes.ts";
import type { ToolRunOptions } from "./run.ts";
import {
  classOption,
  envOption,
  targetHelp,
  targetProfileOption,
  toolOption,
  toolsDirOption,
} from "./target/options.ts";
import type { ToolTestOptions } from "./cases/test-tools.ts";
import type { ToolsOptions } from "./tools.ts";

/** Seconds that a worker gets to answer whether it serves a tool. */
const answerSeconds = 5;
/** Seconds in which a worker broadcasts each of its tools. */
const listenSeconds = 65;

/** Adds `tools`. */
export function addTools(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("tools")
    .description(
      "List the tools of a manifest, or of the workers of a broker: what they are, which are served, which not and why.",
    )
    .option(
      "--tools <dir>",
      "directory of the manifest and its tools (default: MANIFEST_PATH, else as for dev)",
      parseNonEmpty,
    )
    .addOption(brokerOption("ask the workers of a running broker instead of trying on this host"))
    .addOption(
      new Option("--tool <name>", "with --broker: ask for this tool; repeat")
        .argParser((name: string, previous: readonly string[]) => [
          ...previous,
          parseToolName(name),
        ])
        .default([], "those of the manifest"),
    )
    .addOption(
      new Option(
        "--listen [seconds]",
        "with --broker: list the tools that workers broadcast in this time, each once a minute",
      )
        .argParser(parseSeconds)
        .preset(String(listenSeconds)),
    )
    .addOption(namespaceOption(context))
    .addOption(
      new Option("--timeout <seconds>", "with --broker: time for an answer")
        .argParser(parseSeconds)
        .default(answerSeconds),
    )
    .option("--json", "print each tool as one line of JSON")
    .addHelpText("after", toolsHelp)
    .action(async (options: ToolsOptions) => {
      checkNamespace(options.namespace);
      const { listTools } = await import("./tools.ts");
      finish(await listTools(options, context));
    });
}

const toolsHelp = `
Without --broker it opens sandbox and interpreters as a worker with this environment does, and makes no connection.

Exit codes: 0 all are served, 1 some are not, 2 usage.

Examples:
  harness tools --tools my-tools
  harness tools --broker 127.0.0.1 --namespace ed_test --tool weather
  harness tools --broker 127.0.0.1 --namespace ed_test --listen --json`;

/** Where debuggers look for Node (node(1), "--inspect"). */
const defaultInspectPort = 9229;

/** Adds `tool` with its commands. */
export function addTool(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  const tool = program.command("tool").description("Make a tool, and run one without a broker.");
  addRun(tool, context, finish);
  addDescribe(tool, context, finish);
  addNew(tool, context, finish);
  addTest(tool, context, finish);
  addStubs(tool, context, finish);
  addPrompt(tool, context, finish);
}

function addRun(tool: Command, context: Context, finish: (exitCode: number) => void): void {
  tool
    .command("run")
    .description("Run a tool once, in the sandbox that a worker would make for it.")
    .argument("<target>", targetHelp, parseNonEmpty)
    .addOption(toolOption())
    .addOption(classOption())
    .addOption(toolsDirOption())
    .addOption(argsOption())
    .addOption(
      filesOption(
        "--artifact <param=file>",
        "pass FILE as an artifact; repeat for a list, PARAM[]=FILE for a list of one",
      ),
    )
    .addOption(
      filesOption(
        "--preload <param=file>",
        "pass FILE inside the request as agents do with small artifacts; repeat for a list, PARAM[]=FILE for a list of one",
      ),
    )
    .addOption(configOption())
    .addOption(timeoutOption("time for the tool"))
    .addOption(targetProfileOption("sandbox profile, built in or of SANDBOX_PROFILES_FILE"))
    .addOption(envOption())
    .addOption(
      new Option(
        "--debug",
        "for Python: run without a sandbox on this terminal, so that breakpoint() opens pdb",
      ).conflicts(["profile", "inspect"]),
    )
    .addOption(
      new Option(
        "--inspect [port]",
        "for Node: run without a sandbox, and wait for a debugger on this port of 127.0.0.1; 0 takes a free one",
      )
        .argParser(parsePort)
        .preset(String(defaultInspectPort))
        .conflicts("profile"),
    )
    .addOption(
      new Option(
        "--network <mode>",
        "learn: reach every public host, and print the list of hosts that would have been enough",
      )
        .choices(["learn"])
        .conflicts(["debug", "inspect"]),
    )
    .option("--watch", "run again whenever something in the tool's directory changes")
    .option("--keep", "keep a copy of the work directory, and say where")
    .addOption(outOption())
    .addOption(jsonOption())
    .addHelpText("after", runHelp)
    .action(async (target: string, options: ToolRunOptions) => {
      // The worker's parts are loaded for this command only.
      const { runTool } = await import("./run.ts");
      finish(await runTool(target, options, context));
    });
}

const runHelp = `
The result goes to standard output; what the tool prints, its statuses and everything else to standard error.

Exit codes: 0 result, 1 error of the tool or the sandbox, 2 usage, 124 the tool ran out of time, 130 Ctrl-C.

Examples:
  harness tool run my-tools/python/words.py:count_words --args '{"text": "one two"}'
  harness tool run my-tools/node/words.ts:countWords --artifact input=README.md --out results
  harness tool run words.py:Words --tool longest --profile restrictive --keep
  harness tool run my-tools/executable/sha256 --preload file=README.md
  harness tool run my-tools --tool count_words --args '{"text": "one two"}'
  harness tool run words.py:count_words --args @args.json --debug
  harness tool run my-tools --tool weather --network learn`;

function addDescribe(tool: Command, context: Context, finish: (exitCode: number) => void): void {
  tool
    .command("describe")
    .description("Show what tools say of themselves: description, parameters, result.")
    .argument("<target>", targetHelp, parseNonEmpty)
    .addOption(toolOption())
    .addOption(classOption())
    .addOption(toolsDirOption())
    .addOption(configOption())
    .addOption(targetProfileOption("sandbox profile; its network is taken away"))
    .addOption(envOption())
    .addOption(
      new Option("--json", "print description and JSON Schemas as JSON").conflicts("manifest"),
    )
    .option("--manifest", "print the entry for a manifest, which names all tools of the code")
    .addHelpText("after", describeHelp)
    .action(async (target: string, options: ToolDescribeOptions) => {
      const { describeTarget } = await import("./describe/describe.ts");
      finish(await describeTarget(target, options, context));
    });
}

const describeHelp = `
The tool's module is imported in a sandbox, or its program started with --schema; no tool is called.

Exit codes: 0 described, 1 the tool cannot be described, 2 usage.

Examples:
  harness tool describe my-tools/python/words.py:count_words
  harness tool describe my-tools/node/words.ts:countWords --json
  harness tool describe my-tools/python/words.py:Words --manifest
  harness tool describe my-tools/executable/sha256
  harness tool describe my-tools --tool count_words`;

function addNew(tool: Command, context: Context, finish: (exitCode: number) => void): void {
  tool
    .command("new")
    .description("Make a tool, its test, and its entry in the manifest; nothing is overwritten.")
    .argument("<name>", "what agents call the tool", parseNewToolName)
    .addOption(
      new Option("--runtime <language>", "language of the tool")
        .choices(["python", "node", "executable"])
        .makeOptionMandatory(),
    )
    .addOption(
      new Option(
        "--shape <shape>",
        "function; for Python also async, class or provider; for executables shell or go (default: the first of the language)",
      ).choices(allShapes),
    )
    .option(
      "--dir <dir>",
      "directory of the manifest (default: this one if it has a manifest, else tools)",
      parseNonEmpty,
    )
    .addHelpText(
      "after",
      "\nExamples:\n  harness tool new count-words --runtime python\n  harness tool new CountWords --runtime python --shape class --dir my-tools",
    )
    .action(async (name: string, options: ToolNewOptions) => {
      const { newTool } = await import("./new/new.ts");
      finish(await newTool(name, options, context));
    });
}

function addTest(tool: Command, context: Context, finish: (exitCode: number) => void): void {
  tool
    .command("test")
    .description(
      "Run the test cases of tools, NAME.test.yaml, in their sandboxes without a broker.",
    )
    .argument(
      "[dir]",
      "directory of the manifest (default: this one if it has a manifest, else tools)",
      parseNonEmpty,
    )
    .addOption(
      new Option("--tool <name>", "test this tool only; repeat")
        .argParser((name: string, previous: readonly string[]) => [
          ...previous,
          parseToolName(name),
        ])
        .default([], "all"),
    )
    .addHelpText("after", testHelp)
    .action(async (dir: string | undefined, options: ToolTestOptions) => {
      const { testTools } = await import("./cases/test-tools.ts");
      finish(await testTools(dir, options, context));
    });
}

const testHelp = `
The manifest's entries count: profile, limits, variables. A case fails whose tool is not served here.

Exit codes: 0 none failed, 1 one failed, 2 usage or a file that is no test, 130 Ctrl-C.

Examples:
  harness tool test
  harness tool test my-tools --tool count_words`;
