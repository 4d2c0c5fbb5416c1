/**
 * `params.gateway` of a request: what it says of the calls that its tool makes.
 */
import { z } from "zod";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { type GatewayLimits, gatewayLimitKeys } from "../tool-calls/limits.ts";
import { isToolPattern } from "../tool-calls/tool-id.ts";
import type { GatewayRequest } from "../invocation.ts";

/** Patterns and configurations in one request. */
const maxEntries = 100;
/** Characters of a pattern or an id. */
const maxIdLength = 200;

const bound = z.int().min(0).nullish();
/** With none the program would wait for ever. */
const atLeastOne = z.int().min(1).nullish();
const id = z.string().min(1).max(maxIdLength);
const pattern = id.refine(isToolPattern, { error: "expected the id of a tool or NAMESPACE:*" });
const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });

/** Ignores extra members, as the rest of a request does. */
export const gatewayRequest = z
  .object({
    tools: z.array(pattern).max(maxEntries).nullish(),
    tool_configs: jsonObject
      .refine((object) => Object.keys(object).length <= maxEntries, {
        error: `expected at most ${maxEntries} entries`,
      })
      .transform((object) => new Map<string, unknown>(Object.entries(object)))
      .pipe(z.map(id, jsonObject))
      .nullish(),
    max_tool_calls: bound,
    max_chain_steps: bound,
    max_concurrent_calls: atLeastOne,
    max_depth: bound,
    max_lookups: bound,
    max_operations_per_second: atLeastOne,
    max_artifact_bytes: bound,
  })
  .transform((value): GatewayRequest => {
    const limits: Partial<Record<keyof GatewayLimits, number>> = {};
    for (const [key, name] of Object.entries(gatewayLimitKeys)) {
      const given = value[key as keyof typeof gatewayLimitKeys];
      if (typeof given === "number") limits[name] = given;
    }
    return {
      tools: value.tools ?? undefined,
      limits,
      toolConfigs: value.tool_configs ?? new Map<string, JsonObject>(),
    };
  });
