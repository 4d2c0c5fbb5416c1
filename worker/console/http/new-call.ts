/**
 * Reads the call that a page asks for.
 */
import { z } from "zod";
import { maxArtifacts, maxNameLength } from "../../protocol/messages/request.ts";
import { maxTimeoutSeconds } from "../../protocol/limits.ts";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";
import type { NewCall } from "../api.ts";
import { HttpError } from "./failure.ts";

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });
const name = z.string().min(1).max(maxNameLength);
const reference = z.strictObject({ filename: name, version: z.int().min(0) });

const newCall = z.strictObject({
  tool: name,
  arguments: jsonObject,
  inputs: z.record(name, z.union([reference, z.array(reference).max(maxArtifacts)])),
  toolConfig: jsonObject.optional(),
  profile: name.optional(),
  timeoutSeconds: z.int().min(1).max(maxTimeoutSeconds).optional(),
});

/** Throws HttpError that names the first wrong field. */
export function toNewCall(body: JsonObject): NewCall {
  const { data, error } = newCall.safeParse(body);
  if (data !== undefined) return data as NewCall;
  const issue = error?.issues[0];
  const field = issue?.path.join(".") || "the body";
  throw new HttpError(400, "BAD_REQUEST", `${field}: ${issue?.message ?? "not a call"}`);
}
