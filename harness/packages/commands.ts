/**
 * The command lines of `harness env`.
 */
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { parseNonEmpty } from "../options/option-values.ts";
import type { BuildOptions } from "./build.ts";
import type { ListOptions } from "./list.ts";
import type { RemoveOptions } from "./remove.ts";

/** Adds `env` with its commands. */
export function addEnv(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  const env = program
    .command("env")
    .description("List, build and remove the environments that packages of tools are in.");
  env
    .command("list")
    .description(
      "List the environments of PACKAGE_DIR, the one unused for longest first, and its cache.",
    )
    .option("--json", "print each environment as one line of JSON")
    .addHelpText("after", "\nExample:\n  PACKAGE_DIR=/sandbox/environments harness env list")
    .action(async (options: ListOptions) => {
      const { listEnvironments } = await import("./list.ts");
      finish(await listEnvironments(options, context));
    });
  env
    .command("build")
    .description("Install the packages of all tools of a manifest, and print their directories.")
    .option(
      "--tools <dir>",
      "directory of the manifest and its tools (default: MANIFEST_PATH, else as for dev)",
      parseNonEmpty,
    )
    .addHelpText("after", "\nExit codes: 0 all are there, 1 some are not, 2 usage.")
    .action(async (options: BuildOptions) => {
      const { buildEnvironments } = await import("./build.ts");
      finish(await buildEnvironments(options, context));
    });
  env
    .command("remove")
    .description("Remove environments that no worker of this host uses, or the cache.")
    .argument("[key...]", "their keys, or the beginnings of them", parseKeys)
    .option("--cache", "remove what installers keep of downloads")
    .addHelpText("after", "\nExit codes: 0 removed, 1 in use, 2 no such environment.")
    .action(async (keys: readonly string[] | undefined, options: RemoveOptions) => {
      const { removeEnvironments } = await import("./remove.ts");
      finish(await removeEnvironments(keys ?? [], options, context));
    });
}

function parseKeys(key: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), parseNonEmpty(key)];
}
