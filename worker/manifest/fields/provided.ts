/**
 * The field `tools` of an entry that provides several tools: a provider class or an executable.
 */
import { z } from "zod";
import { entryNameSchema } from "../../protocol/operator-fields.ts";
import { accepts } from "../../support/text/expectation.ts";

/** Largest number of tools of one entry. */
export const maxProvided = 100;

const toolList = accepts(`a list of 1 to ${maxProvided} names of tools`);

/** The field `tools`. */
export const providedField = z
  .array(entryNameSchema, toolList)
  .min(1, toolList)
  .max(maxProvided, toolList)
  .nullish()
  .describe("Names of tools that the class or the executable provides, each a tool of its own.");
