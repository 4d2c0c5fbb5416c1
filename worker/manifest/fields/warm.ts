/**
 * The field `warm` of a tool: bounds for the number of idle sandboxes.
 */
import { z } from "zod";
import {
  accepts,
  acceptsKeys,
  expectation,
  unquoted,
  whenFineSoFar,
} from "../../support/text/expectation.ts";
import type { WarmBounds } from "../manifest.ts";

/** Largest number of idle sandboxes of one tool. */
export const maxWarm = 64;
/** Default bounds. */
export const defaultWarm: WarmBounds = { min: 0, max: 32 };

const count = accepts(`a whole number from 0 to ${maxWarm}`);
const number = z.number(count).int(count).min(0, count).max(maxWarm, count);
const bound = z.preprocess(unquoted, number).nullish();

/** The field `warm`. */
export const warmField = z
  .strictObject(
    {
      min: bound.describe(
        `Sandboxes that wait also when nobody has called for long. Default: ${defaultWarm.min}.`,
      ),
      max: bound.describe(`Sandboxes that wait at most. Default: ${defaultWarm.max}, or min.`),
    },
    acceptsKeys('a map of "min" and "max"', ["min", "max"]),
  )
  .superRefine(({ min, max }, context) => {
    if (typeof min !== "number" || typeof max !== "number" || min <= max) return;
    const message = expectation(`at most max, which is ${max}`, min);
    context.addIssue({ code: "custom", path: ["min"], message });
  }, whenFineSoFar);

/** The bounds of a valid field. */
export function toWarmBounds(field: z.output<typeof warmField> | null | undefined): WarmBounds {
  const min = field?.min ?? Math.min(defaultWarm.min, field?.max ?? maxWarm);
  return { min, max: field?.max ?? Math.max(defaultWarm.max, min) };
}
