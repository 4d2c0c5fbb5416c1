/**
 * `harness tool describe`: what a tool in a file says of itself, as a worker derives it.
 */
import { wireDescriptions } from "../../worker/wiring/discovery.ts";
import { InvocationError } from "../../worker/protocol/errors.ts";
import type { ToolDescription } from "../../worker/protocol/discovery/tool-description.ts";
import { type JsonObject, isJsonObject } from "../../worker/support/json/json.ts";
import { CommandError, type Context, exit, withCauses } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { findPrograms } from "../prerequisites.ts";
import { createPassableDirectory } from "../temporary.ts";
import { openToolFoundation, toolName } from "./local-foundation.ts";
import { findTarget } from "./target.ts";

/** The command line, without the target. */
export interface ToolDescribeOptions {
  readonly class?: boolean;
  readonly toolsDir?: string;
  readonly config: JsonObject;
  readonly profile: string;
  readonly env: readonly string[];
  readonly json?: boolean;
}

/** Describes the tool and prints it. Throws CommandError where it cannot be described. */
export async function describeTarget(
  name: string,
  options: ToolDescribeOptions,
  context: Context,
): Promise<number> {
  const { profile, env, toolsDir, config: toolConfig } = options;
  const target = await findTarget({
    target: name,
    isClass: options.class ?? false,
    ...(toolsDir !== undefined && { toolsDir }),
  });
  const programs = await findPrograms(context.environment);
  await using home = await createPassableDirectory("str-tool-describe-");
  const local = { target, profile, env, programs, home: home.path, debug: undefined };
  await using opened = await openToolFoundation(local, context);
  const { config, host, foundation } = opened;
  const tool = foundation.catalog.resolve(toolName);
  if (tool === undefined) {
    const { reason = "it is not there" } = foundation.catalog.unavailable(toolName) ?? {};
    throw new CommandError(`the tool cannot be served: ${reason}`);
  }
  const descriptions = wireDescriptions(config, host, foundation);
  try {
    const described = await descriptions.describe(tool, context.signal, toolConfig);
    context.out.line(
      options.json ? printable(asJson(described)) : asText(target.callable.name, described),
    );
    return exit.success;
  } catch (error) {
    if (!(error instanceof InvocationError)) throw error;
    const text = [`${error.code}: ${error.message}`, ...withCauses(error.cause)];
    throw new CommandError(text.join("\n  because: "), { cause: error });
  }
}

function asJson({ artifactParameters, ...described }: ToolDescription): string {
  const all = { ...described, artifactParameters: Object.fromEntries(artifactParameters) };
  return JSON.stringify(all, undefined, 2);
}

function asText(name: string, described: ToolDescription): string {
  const { description, parameters, result, config, artifactParameters } = described;
  const sections = [
    `${name}: ${description ?? "(no description)"}`,
    section("Parameters", parameters, (parameter) => {
      const artifact = artifactParameters.get(parameter);
      return artifact && (artifact.isList ? "artifacts" : "artifact");
    }),
    ...(config === undefined ? [] : [section("Configuration", config)]),
    section("Result", result),
  ];
  return sections
    .flatMap((lines) => lines)
    .map(printable)
    .join("\n");
}

/** One line for each member of an object's schema. */
function section(
  title: string,
  schema: JsonObject | undefined,
  kindOf: (member: string) => string | undefined = () => undefined,
): readonly string[] {
  if (schema === undefined) return [`${title}: not known`];
  const { properties, required, additionalProperties } = schema;
  const needed = new Set(Array.isArray(required) ? required : []);
  const members = Object.entries(isJsonObject(properties) ? properties : {});
  const lines = members.map(([member, of]) => {
    const { description } = isJsonObject(of) ? of : {};
    const kind = kindOf(member) ?? typeText(of);
    const text = typeof description === "string" ? `  ${description}` : "";
    return `  ${member}: ${kind}${needed.has(member) ? "" : ", optional"}${text}`;
  });
  const others = members.length === 0 && additionalProperties !== false ? ["  any members"] : [];
  return [lines.length + others.length === 0 ? `${title}: none` : `${title}:`, ...lines, ...others];
}

/** A schema in a word or two. */
function typeText(schema: unknown): string {
  if (!isJsonObject(schema)) return "anything";
  const { type, enum: values, anyOf, $ref: reference, items } = schema;
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (Array.isArray(anyOf)) return anyOf.map(typeText).join(" | ");
  if (typeof reference === "string") return reference.slice(reference.lastIndexOf("/") + 1);
  if (type === "array" && isJsonObject(items)) return `array of ${typeText(items)}`;
  return typeof type === "string" ? type : "anything";
}
