/**
 * `harness tool prompt`: what an agent's YAML says of an entry whose code calls tools.
 */
import { stringify } from "yaml";
import { promptOf } from "../../../worker/gateway/stubs/prompt.ts";
import { type Context, exit } from "../../context.ts";
import { languagesOf } from "./languages.ts";
import { type ManifestFlags, readToolsInScope } from "./tools-in-scope.ts";

/** Prints it as a member of the agent's entry. Throws UsageError and CommandError. */
export async function printPrompt(
  name: string,
  options: ManifestFlags,
  context: Context,
): Promise<number> {
  const { entry, tools } = await readToolsInScope(name, options, context);
  const { languages, description } = entry;
  const runsPrograms = languages !== undefined;
  const text = promptOf(tools, { languages: languagesOf(entry), runsPrograms, description });
  context.out.write(stringify({ tool_description: text }, { lineWidth: 0 }));
  return exit.success;
}
