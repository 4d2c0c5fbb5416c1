/**
 * The messages of a connection, read strictly. Text messages are these, binary ones are bytes of
 * the gateway's channel.
 */
import { z } from "zod";
import {
  JsonError,
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
} from "../../support/json/json.ts";
import { runtimeErrorFacts, runtimeOps } from "../api/errors.ts";
import { enforcers, limitKinds, runtimeLimitNames } from "../api/limits.ts";
import { runtimeProfiles } from "../api/request.ts";
import { readinesses } from "../api/result.ts";

/** The WebSocket subprotocol. Another version has another name. */
export const subprotocol = "secure-tool-runtime.v1";

/** Characters of a name. */
const maxNameLength = 100;
const maxLanguages = 32;

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "expected an object" });
const json = z.custom<Json>((value) => value !== undefined, { error: "expected JSON" });
const text = z.string();
const name = z.string().min(1).max(maxNameLength);
const milliseconds = z.number().min(0);
const limit = z.int().min(0).exactOptional();
type LimitName = (typeof runtimeLimitNames)[number];
const limits = Object.fromEntries(runtimeLimitNames.map((each) => [each, limit])) as Record<
  LimitName,
  typeof limit
>;
const evidence = z.partialRecord(z.enum(limitKinds), z.enum(enforcers));
const readiness = z.enum(readinesses);

/** So much of the channel's window is free again. */
const taken = z.strictObject({ type: z.literal("taken"), bytes: z.int().min(1) });

const callerMessage = z.discriminatedUnion("type", [
  /** Asks for a `description`. */
  z.strictObject({ type: z.literal("describe") }),
  /** Asks for a `result` or an `error`. */
  z.strictObject({
    type: z.literal("execute"),
    code: text.min(1),
    language: name,
    timeoutMs: milliseconds,
    limits: z.strictObject(limits),
    requireEnforced: z
      .array(z.enum(limitKinds))
      .check(z.maxLength(limitKinds.length))
      .exactOptional(),
    /** That of the description: the far side refuses if it has another backend by now. */
    kind: name.exactOptional(),
    profile: z.enum(runtimeProfiles).exactOptional(),
    metadata: jsonObject,
  }),
  /** Ends the execution, which is answered then. */
  z.strictObject({ type: z.literal("abort") }),
  taken,
]);

const farMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("description"),
    kind: name,
    languages: z.tuple([name], name).check(z.maxLength(maxLanguages)),
    readiness,
    profiles: z.array(z.enum(runtimeProfiles)).max(runtimeProfiles.length),
    evidence,
  }),
  z.strictObject({
    type: z.literal("result"),
    value: json,
    stdout: text,
    stderr: text,
    limitsEnforcedBy: evidence,
    backend: z.strictObject({ kind: name, readiness, details: jsonObject }),
    durationMs: milliseconds,
  }),
  z.strictObject({
    type: z.literal("error"),
    code: z.enum(Object.keys(runtimeErrorFacts) as (keyof typeof runtimeErrorFacts)[]),
    op: z.enum(runtimeOps),
    retryable: z.boolean(),
    detail: text.exactOptional(),
    data: jsonObject.exactOptional(),
    partial: z.strictObject({ stdout: text, stderr: text }).exactOptional(),
  }),
  taken,
]);

/** What a caller sends. */
export type CallerMessage = z.infer<typeof callerMessage>;
/** What the far side sends. */
export type FarMessage = z.infer<typeof farMessage>;
export type TakenMessage = z.infer<typeof taken>;
/** Messages that are not of the channel. */
export type CallerRequest = Exclude<CallerMessage, TakenMessage>;
export type FarAnswer = Exclude<FarMessage, TakenMessage>;

export type ExecuteMessage = Extract<CallerMessage, { type: "execute" }>;
export type Description = Extract<FarMessage, { type: "description" }>;
export type ResultMessage = Extract<FarMessage, { type: "result" }>;
export type ErrorMessage = Extract<FarMessage, { type: "error" }>;

/** A peer's mistake, for which the connection closes. The message is publishable. */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ProtocolError";
  }
}

/** Throws ProtocolError. */
export function readCallerMessage(bytes: Buffer): CallerMessage {
  return read(callerMessage, bytes);
}

/** Throws ProtocolError. */
export function readFarMessage(bytes: Buffer): FarMessage {
  return read(farMessage, bytes);
}

function read<Message>(schema: z.ZodType<Message>, bytes: Buffer): Message {
  const { data, error } = schema.safeParse(parse(bytes));
  if (data !== undefined) return data;
  throw new ProtocolError(`a message is invalid: ${describe(error)}`);
}

function parse(bytes: Buffer): Json {
  try {
    return parseJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new ProtocolError(`a message cannot be read: ${error.message}`);
  }
}

/** `limits.memoryBytes: expected int`: never a value. */
function describe(error: z.ZodError | undefined): string {
  const issue = error?.issues[0];
  const field = issue?.path.map(String).join(".").slice(0, maxNameLength) || "message";
  if (issue?.code === "unrecognized_keys") return `${field}: has another member`;
  if (issue?.code === "invalid_type") return `${field}: expected ${issue.expected}`;
  return `${field}: is not as it has to be`;
}
