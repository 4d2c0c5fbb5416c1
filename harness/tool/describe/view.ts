/**
 * A tool's description, for people and for programs.
 */
import type { PublishedDescription } from "../../../worker/protocol/discovery/messages.ts";
import { type JsonObject, isJsonObject } from "../../../worker/support/json/json.ts";
import { printable } from "../../invoke/screen.ts";

/** Members of a JSON document. */
export function asMembers({ artifactParameters, ...described }: PublishedDescription): object {
  return { ...described, artifactParameters: Object.fromEntries(artifactParameters) };
}

/** Lines for people. */
export function asText(name: string, described: PublishedDescription): string {
  const { description, instructions, parameters, result, config, artifactParameters } = described;
  const sections = [
    `${name}: ${description ?? "(no description)"}`,
    ...(instructions === undefined ? [] : [`Instructions: ${instructions}`]),
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
