/**
 * Examples that show programs how a tool is called.
 */
import type { JsonObject } from "../../support/json/json.ts";

/** An example of a call. */
export interface ToolExample {
  readonly title?: string;
  readonly description: string;
  readonly args: JsonObject;
  readonly resultHint?: string;
}
