/**
 * The manifest's part of a description, which goes before that of the code, field by field.
 */
import { isDeepStrictEqual } from "node:util";
import type { ToolEntry } from "../manifest/manifest.ts";
import type { PublishedDescription } from "../protocol/discovery/messages.ts";
import { parametersProblem, schemaProblem } from "../protocol/discovery/schema-problems.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import type { JsonObject } from "../support/json/json.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";

const nothing: ToolDescription = {
  description: undefined,
  parameters: undefined,
  result: undefined,
  config: undefined,
  artifactParameters: new Map(),
};

/** Whether the manifest leaves text or parameters to the code. */
export function needsCode({ description, described }: ToolEntry): boolean {
  return description === undefined || described.parameters === undefined;
}

/** Whether what is known of the code of one entry holds for the other, as far as entries say. */
export function isSameCode(one: ToolEntry, other: ToolEntry): boolean {
  const code = ({ runtime, module, toolDir, callable, toolset }: ToolEntry) => {
    return [runtime, module, toolDir, callable, toolset?.name];
  };
  return isDeepStrictEqual(code(one), code(other));
}

/** The description of a tool whose code is not asked. */
export function describedByManifest(tool: ToolEntry): PublishedDescription {
  return combine(tool, nothing);
}

/** A derived description with the manifest's parts. Drops and logs schemas that are not usable. */
export function withManifest(
  tool: ToolEntry,
  derived: ToolDescription,
  log: Logger,
): PublishedDescription {
  const usable = (
    field: "parameters" | "result" | "config",
    problemOf: typeof schemaProblem,
  ): JsonObject | undefined => {
    const schema = derived[field];
    const problem = schema && problemOf(schema);
    if (problem === undefined) return schema;
    const reason = [problem.path.join("."), problem.message].filter(Boolean).join(": ");
    logEvent(log, "tool.schema_refused", { tool: tool.name, field, reason });
    return undefined;
  };
  return combine(tool, {
    ...derived,
    parameters: usable("parameters", parametersProblem),
    result: usable("result", schemaProblem),
    config: usable("config", schemaProblem),
  });
}

/** Whether agents may call a tool. */
export function isForAgents({ catalog }: Pick<ToolEntry, "catalog">): boolean {
  return catalog.allowedCallers.has("direct");
}

/** A description with what the manifest says of callers. */
export function published(
  { catalog }: Pick<ToolEntry, "catalog">,
  description: PublishedDescription,
): PublishedDescription {
  return { ...description, allowedCallers: catalog.allowedCallers };
}

function combine(
  { description, described }: ToolEntry,
  derived: ToolDescription,
): PublishedDescription {
  return { ...derived, ...described, description: description ?? derived.description };
}
