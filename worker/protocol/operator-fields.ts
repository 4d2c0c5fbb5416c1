/**
 * Fields that manifest and profiles file share: limits and names.
 */
import { z } from "zod";
import { accepts, acceptsKeys, unquoted, whenFineSoFar } from "../support/text/expectation.ts";
import { type LimitName, type Limits, limitFacts, limitNames } from "./resource-limits.ts";
import { toolNameProblem } from "./topics.ts";

const limitFields: readonly string[] = limitNames.map((name) => limitFacts[name].field);

/** The field `limits`. Refuses unknown keys, since a misspelled limit would not apply. */
export const limitsField = z.strictObject(
  Object.fromEntries(limitNames.map((name) => [limitFacts[name].field, boundField(name)])),
  acceptsKeys("a map of limits", limitFields),
);

function boundField(name: LimitName) {
  const { min, max, description } = limitFacts[name];
  const whole = accepts(`a whole number, ${min} to ${max}`);
  // `z.int` would end the checks of the entry at its refusal.
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

/** Limits of a field `limits`, in their own units. A limit without a value counts as absent. */
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

/** Name of a tool or a profile: valid in a topic, with a letter or digit first. */
export const entryNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, entryName)
  .refine((name) => toolNameProblem(name) === undefined, { ...entryName, ...whenFineSoFar });
