/**
 * The fields of tools that call other tools, and of those that these may call.
 */
import { z } from "zod";
import {
  type GatewayLimits,
  defaultGatewayLimits,
  gatewayLimitKeys,
  mostGatewayLimits,
} from "../../protocol/tool-calls/limits.ts";
import { isToolPattern } from "../../protocol/tool-calls/tool-id.ts";
import { toolNameProblem } from "../../protocol/topics.ts";
import { accepts, acceptsKeys, unquoted } from "../../support/text/expectation.ts";
import type { CallerKind, CatalogFields, GatewayGrant } from "../manifest.ts";
import type { ToolExample } from "../../protocol/tool-calls/example.ts";

/** Patterns and tools of other workers of one gateway, tags and examples of one tool. */
const maxPatterns = 100;
export const maxRemoteTools = 100;
const maxTags = 20;
const maxExamples = 10;
/** Characters of a namespace, a tag, and the words of an example. */
const maxWord = 50;
const maxExampleText = 300;
const maxResultHint = 200;
const maxTitle = 100;

const callerKinds = ["direct", "programmatic"] as const satisfies readonly CallerKind[];
const defaultCallers: readonly CallerKind[] = ["direct"];

const patternText = accepts(
  'the id of a tool such as "csv_convert" or "sales:query", or "sales:*" for a namespace',
);
const remoteText = accepts('the name of a tool of another worker, such as "weather"');
const remotesText = accepts(`a list of 1 to ${maxRemoteTools} names of tools`);
const eitherText = accepts('"tools", "remote" or both');
const patternsText = accepts(`a list of 1 to ${maxPatterns} ids of tools`);
const word = accepts(`1 to ${maxWord} letters, digits, _ and -`);
const tagsText = accepts(`a list of at most ${maxTags} tags`);
const examplesText = accepts(`a list of at most ${maxExamples} examples`);
const exampleKeys = ["title", "description", "args", "result_hint"] as const;
const exampleText = acceptsKeys('a map with "description" and "args"', [...exampleKeys]);

/** All tools would be those of toolsets, too. */
function isListedPattern(text: string): boolean {
  return text !== "*" && isToolPattern(text);
}

const patterns = z
  .array(z.string(patternText).refine(isListedPattern, patternText), patternsText)
  .min(1, patternsText)
  .max(maxPatterns, patternsText);

const remoteNames = z
  .array(
    z.string(remoteText).refine((name) => toolNameProblem(name) === undefined, remoteText),
    remotesText,
  )
  .min(1, remotesText)
  .max(maxRemoteTools, remotesText);

function limitField(key: keyof typeof gatewayLimitKeys, what: string) {
  const name = gatewayLimitKeys[key];
  const text = accepts(`a whole number from 1 to ${mostGatewayLimits[name]}`);
  return z
    .preprocess(unquoted, z.number(text).int(text).min(1, text).max(mostGatewayLimits[name], text))
    .nullish()
    .describe(`${what} Default: ${defaultGatewayLimits[name]}.`);
}

const gatewayKeys = ["tools", "remote", ...Object.keys(gatewayLimitKeys)];

const gatewayField = z.strictObject(
  {
    tools: patterns
      .nullish()
      .describe("Tools of this manifest that it may call: ids, or `NAMESPACE:*`."),
    remote: remoteNames
      .nullish()
      .describe("Names of tools that other workers serve and that it may call."),
    max_tool_calls: limitField("max_tool_calls", "Calls, steps of chains included."),
    max_chain_steps: limitField("max_chain_steps", "Steps of one chain."),
    max_concurrent_calls: limitField("max_concurrent_calls", "Calls at once."),
    max_depth: limitField("max_depth", "Depth of calls in calls."),
    max_lookups: limitField("max_lookups", "Searches and descriptions."),
    max_operations_per_second: limitField(
      "max_operations_per_second",
      "Calls and lookups a second; as many may come at once.",
    ),
    max_artifact_bytes: limitField("max_artifact_bytes", "Bytes of artifacts that it loads."),
  },
  acceptsKeys(`a map of ${gatewayKeys.join(", ")}`, gatewayKeys),
);

const example = z.strictObject(
  {
    title: z.string(exampleText).max(maxTitle, exampleText).nullish(),
    description: z.string(exampleText).max(maxExampleText, exampleText),
    args: z.record(z.string(), z.unknown(), exampleText),
    result_hint: z.string(exampleText).max(maxResultHint, exampleText).nullish(),
  },
  exampleText,
);

/** The fields, by name. */
export const gatewayFields = {
  gateway: gatewayField
    .refine(({ tools, remote }) => Boolean(tools ?? remote), eitherText)
    .nullish()
    .describe("Tools that the tool may call from inside. Default: none."),
  allowed_callers: z
    .array(
      z.enum(callerKinds, accepts("direct or programmatic")),
      accepts("a list of direct, programmatic"),
    )
    .min(1, accepts("a list of direct, programmatic"))
    .nullish()
    .describe(
      "`direct`: agents may call it. `programmatic`: tools with a gateway may. Default: direct.",
    ),
  namespace: z
    .string(word)
    .regex(/^[A-Za-z0-9_-]{1,50}$/, word)
    .nullish()
    .describe("Namespace of the tool's id in gateways."),
  tags: z
    .array(z.string(word).regex(/^[A-Za-z0-9_-]{1,50}$/, word), tagsText)
    .max(maxTags, tagsText)
    .nullish()
    .describe("Words by which gateways find the tool."),
  examples: z
    .array(example, examplesText)
    .max(maxExamples, examplesText)
    .nullish()
    .describe("Calls that show how the tool is used."),
};

type Fields = z.output<z.ZodObject<typeof gatewayFields>>;

interface GrantFields extends Pick<Fields, "gateway"> {
  readonly idempotent?: boolean | null | undefined;
}

/** Undefined for a tool that calls no others. */
export function toGatewayGrant({ gateway, idempotent }: GrantFields): GatewayGrant | undefined {
  if (!gateway) return undefined;
  const given: Partial<Record<keyof GatewayLimits, number>> = {};
  for (const [key, name] of Object.entries(gatewayLimitKeys)) {
    const value = gateway[key as keyof typeof gatewayLimitKeys];
    if (typeof value === "number") given[name] = value;
  }
  const limits = { ...defaultGatewayLimits, ...given };
  const { tools, remote } = gateway;
  const isIdempotent = idempotent === true;
  return { tools: tools ?? [], remote: remote ?? [], limits, isIdempotent };
}

/** What gateways know of a tool. */
export function toCatalogFields(fields: Fields): CatalogFields {
  const { namespace, tags, allowed_callers: callers, examples } = fields;
  return {
    allowedCallers: new Set(callers ?? defaultCallers),
    namespace: namespace ?? undefined,
    tags: [...new Set(tags ?? [])],
    examples: (examples ?? []).map(toExample),
  };
}

function toExample({ title, description, args, result_hint: hint }: z.output<typeof example>) {
  return {
    ...(typeof title === "string" && { title }),
    description,
    args: args as ToolExample["args"],
    ...(typeof hint === "string" && { resultHint: hint }),
  };
}
