/**
 * `harness agent-yaml`: what an agent's YAML has to say of a tool.
 */
import { stringify } from "yaml";
import { type JsonObject, isJsonObject } from "../../worker/support/json/json.ts";
import { CommandError, type Context, exit } from "../context.ts";
import { defaultAgentName } from "../agent.ts";
import { openCommandBroker } from "../options/broker-option.ts";
import { DiscoveryClient, type ToolFacts } from "./discovery-client.ts";

/** The command line. */
export interface AgentYamlOptions {
  readonly broker: string;
  readonly namespace: string;
  readonly config: JsonObject;
  /** Seconds for an answer. */
  readonly timeout: number;
}

/** Prints it. Rejects with CommandError when no worker answers, or with BrokerError. */
export async function printAgentYaml(
  tool: string,
  { broker: text, namespace, config, timeout }: AgentYamlOptions,
  context: Context,
): Promise<number> {
  const { signal, out } = context;
  const who = { namespace, name: defaultAgentName };
  const { broker } = await openCommandBroker(text, who, context);
  const options = { namespace, agent: defaultAgentName };
  await using client = await DiscoveryClient.on(broker, options, signal);
  const over = AbortSignal.timeout(Math.ceil(timeout * 1000));
  try {
    const facts = await client.ask(tool, config, AbortSignal.any([signal, over]));
    out.write(agentYaml(tool, facts, config));
    return exit.success;
  } catch (error) {
    if (!over.aborted || signal.aborted) throw error;
    throw new CommandError(`no worker describes ${tool} within ${timeout} s`);
  }
}

/** An entry of an agent's list `tools`. */
export function agentYaml(tool: string, facts: ToolFacts, toolConfig: JsonObject): string {
  const entry = {
    tool_type: "sam_remote",
    tool_name: tool,
    tool_description: facts.description ?? "",
    ...(facts.parameters && { parameters: withArtifacts(facts.parameters, facts) }),
    ...(Object.keys(toolConfig).length > 0 && { tool_config: toolConfig }),
  };
  return stringify([entry], { lineWidth: 100 });
}

/** Agents load an artifact for a parameter of the type `artifact` only. */
function withArtifacts(
  { properties, ...schema }: JsonObject,
  { artifactParameters }: Pick<ToolFacts, "artifactParameters">,
): JsonObject {
  if (!isJsonObject(properties)) return schema;
  const marked = Object.entries(properties).map(([name, property]) => {
    const facts = Object.hasOwn(artifactParameters, name) ? artifactParameters[name] : undefined;
    if (!isJsonObject(facts) || !isJsonObject(property)) return [name, property] as const;
    const { description, nullable } = property;
    const artifact = { type: "artifact" };
    const type = facts["is_list"] === true ? { type: "array", items: artifact } : artifact;
    const texts = { ...(description !== undefined && { description }) };
    return [name, { ...type, ...texts, ...(nullable !== undefined && { nullable }) }] as const;
  });
  const { type, ...rest } = schema;
  return { ...(type !== undefined && { type }), properties: Object.fromEntries(marked), ...rest };
}
