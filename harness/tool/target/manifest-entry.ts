/**
 * The entry of a manifest for code that a command line names.
 */
import { stringify } from "yaml";
import { entryNameSchema } from "../../../worker/protocol/operator-fields.ts";
import type { TargetFlags } from "./open.ts";
import { type CodeTarget, entryFields } from "./target.ts";

/** Blanks before a tool's name in a manifest. */
const indent = "  ";

/** Its lines, to be put below `tools`. `names` are those of the code's tools, as it says itself. */
export function manifestEntry(
  target: CodeTarget,
  names: readonly string[],
  { profile, env }: Pick<TargetFlags, "profile" | "env">,
): string {
  const { kind, name: own } = target.callable;
  const [first = own] = names;
  // A class that provides tools is no tool itself, whatever their number.
  const isList = names.length > 1 || (kind === "class" && first !== own);
  const name = names.length > 1 ? own : first;
  const entry = {
    ...entryFields(target, isList ? names : []),
    ...(profile !== undefined && { sandbox_profile: profile }),
    ...(env.length > 0 && { env }),
  };
  const key = entryNameSchema.safeParse(name).success ? name : "tool";
  return stringify({ [key]: entry }, { lineWidth: 0 })
    .trimEnd()
    .replaceAll(/^(?=.)/gm, indent);
}
