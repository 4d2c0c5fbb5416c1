/**
 * The command lines of `harness artifact`.
 */
import { type Command, Option } from "commander";
import type { ArtifactReference } from "../../worker/protocol/invocation.ts";
import type { Context } from "../context.ts";
import { parseArtifactReference, parseNonEmpty } from "../options/option-values.ts";
import { checkNamespace, namespaceOption, sessionOption, userOption } from "../options/options.ts";
import type { GetOptions } from "./get.ts";
import type { ListOptions } from "./list.ts";
import type { PutOptions } from "./put.ts";

/** Adds `artifact` with its commands. */
export function addArtifact(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  const artifact = program
    .command("artifact")
    .description("Save, load and list artifacts in the store that worker and agents share.");
  addPut(artifact, context, finish);
  addGet(artifact, context, finish);
  addList(artifact, context, finish);
  addVersions(artifact, context, finish);
}

function addPut(artifact: Command, context: Context, finish: (exitCode: number) => void): void {
  const command = artifact
    .command("put")
    .description("Save a file as a new version, and print NAME@VERSION.")
    .argument("<file>", "a regular file, or - for standard input", parseNonEmpty)
    .option("--name <name>", "name of the artifact (default: the file's)", parseNonEmpty)
    .option("--mime-type <type>", "its type (default: by the name's extension)", parseNonEmpty)
    .option("--description <text>", "what agents are told of it", parseNonEmpty)
    .option("--no-metadata", "leave out NAME.metadata.json, in which agents keep such facts");
  addCaller(command, context)
    .addHelpText(
      "after",
      help(
        "harness artifact put report.csv --session web-1 --description 'Sales in May'",
        "tar c results | harness artifact put - --name results.tar",
      ),
    )
    .action(async (file: string, options: PutOptions) => {
      checkNamespace(options.namespace);
      const { putArtifact } = await import("./put.ts");
      finish(await putArtifact(file, options, context));
    });
}

function addGet(artifact: Command, context: Context, finish: (exitCode: number) => void): void {
  const command = artifact
    .command("get")
    .description("Write an artifact to a file.")
    .argument(
      "<name[@version]>",
      "its name; the latest version unless one is given",
      parseArtifactReference,
    )
    .addOption(
      new Option(
        "--output <file>",
        "a file, a directory (DIR/ is created), or - for standard output",
      )
        .argParser(parseNonEmpty)
        .default(".", "a file of the artifact's name in this directory"),
    )
    .option("--force", "replace an existing file");
  addCaller(command, context)
    .addHelpText(
      "after",
      help(
        "harness artifact get report.csv",
        "harness artifact get report.csv@3 --output results/",
        "harness artifact get user:prefs.json --output - | jq .",
      ),
    )
    .action(async (reference: ArtifactReference, options: GetOptions) => {
      checkNamespace(options.namespace);
      const { getArtifact } = await import("./get.ts");
      finish(await getArtifact(reference, options, context));
    });
}

function addList(artifact: Command, context: Context, finish: (exitCode: number) => void): void {
  const command = artifact
    .command("list")
    .description("Print each artifact of a session and of its user as NAME@VERSION, the latest.");
  command.option("--all", "with the metadata of agents, NAME.metadata.json");
  addCaller(addLong(command), context)
    .addHelpText("after", help("harness artifact list --session web-1 --long"))
    .action(async (options: ListOptions & { readonly all?: boolean }) => {
      checkNamespace(options.namespace);
      const { listArtifacts } = await import("./list.ts");
      finish(await listArtifacts(options, context));
    });
}

function addVersions(
  artifact: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  const command = artifact
    .command("versions")
    .description("Print the versions of an artifact as NAME@VERSION.")
    .argument("<name>", "its name", parseNonEmpty);
  addCaller(addLong(command), context)
    .addHelpText("after", help("harness artifact versions report.csv --session web-1"))
    .action(async (name: string, options: ListOptions) => {
      checkNamespace(options.namespace);
      const { listVersions } = await import("./list.ts");
      finish(await listVersions(name, options, context));
    });
}

function addLong(command: Command): Command {
  return command.option("--long", "with type and size, one request more for each version");
}

function addCaller(command: Command, context: Context): Command {
  return command
    .addOption(userOption())
    .addOption(sessionOption())
    .addOption(namespaceOption(context))
    .option("--json", "print an object, as one line of JSON, for each version");
}

function help(...examples: readonly string[]): string {
  const lines = examples.map((example) => `\n  ${example}`).join("");
  return `
The store is that of the worker's ARTIFACT_* variables. Names that begin with user: belong to all sessions of the user.

Exit codes: 0 done, 1 not found or an error of the store, 2 usage, 130 Ctrl-C.

Examples:${lines}`;
}
