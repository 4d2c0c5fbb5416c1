/**
 * Fields that mean the same in every file of the operator's: the bounds of a sandbox, and its
 * network.
 */
import { z } from "zod";
import { accepts, acceptsKeys, unquoted, whenFineSoFar } from "../support/text/expectation.ts";
import { type LimitName, type Limits, limitFacts, limitNames } from "./resource-limits.ts";
import { toolNameProblem } from "./topics.ts";

/**
 * `none`: an empty network namespace. `host`: the host's network, with its certificates and name
 * service files.
 */
export type NetworkMode = "none" | "host";

/** Every {@link NetworkMode}, from tight to wide. */
export const networkModes = ["none", "host"] as const satisfies readonly NetworkMode[];

/** The field `network`. */
export const networkField = z.enum(networkModes, accepts(`one of ${networkModes.join(", ")}`));

const limitFields: readonly string[] = limitNames.map((name) => limitFacts[name].field);

/**
 * The field `limits`. A key that is not known is refused: a limit that is spelled wrong would not
 * hold.
 */
export const limitsField = z.strictObject(
  Object.fromEntries(limitNames.map((name) => [limitFacts[name].field, boundField(name)])),
  acceptsKeys("a map of limits", limitFields),
);

function boundField(name: LimitName) {
  const { min, max, description } = limitFacts[name];
  const whole = accepts(`a whole number, ${min} to ${max}`);
  // Not `z.int`, whose refusal keeps other checks of the entry from being made.
  const bound = z
    .number(whole)
    .refine(Number.isInteger, whole)
    .min(min, { ...whole, ...whenFineSoFar })
    .max(max, { ...whole, ...whenFineSoFar })
    .meta({ type: "integer" });
  return z
    .preprocess(unquoted, bound)
    .nullish()
    .describe(`Bound of: ${description.replaceAll("`", "")}.`);
}

/**
 * The limits that a field `limits` names, in their own units. A limit with nothing after it counts
 * as absent.
 */
export function toLimits(fields: z.output<typeof limitsField> | null | undefined): Partial<Limits> {
  const named = limitNames.flatMap((name) => {
    const { field, scale } = limitFacts[name];
    const value = fields?.[field];
    return typeof value === "number" ? [[name, value * scale] as const] : [];
  });
  return Object.fromEntries(named);
}

const entryName = {
  error: ({ input }: { input?: unknown }) =>
    `the name ${toolNameProblem(String(input)) ?? "does not start with a letter or digit"}`,
};

/** The name of a tool or a profile: what a topic allows, with a letter or digit first. */
export const entryNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, entryName)
  .refine((name) => toolNameProblem(name) === undefined, { ...entryName, ...whenFineSoFar });
