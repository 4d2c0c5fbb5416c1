/**
 * What a status says besides its text: progress, a log line, a partial result. The same members in
 * a line of `status.pipe` and in the `params` of a notification.
 */
import { z } from "zod";
import { type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { withoutDeceptive } from "../../support/text/deceptive.ts";

/** Levels of a tool's log lines. */
export const logLevels = ["debug", "info", "warning", "error"] as const;
/** Deepest nesting of a partial result: decoders of agents have limits of their own. */
const maxDepth = 32;

const text = z.string().transform((value) => withoutDeceptive(value.toWellFormed()));
const amount = z.number().nonnegative();
const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);

const progress: z.ZodType<Progress> = z.object({
  done: amount,
  total: optional(amount),
  message: optional(text),
});

/** Entries instead of a record keep keys such as `__proto__`. */
const fields = z
  .custom<JsonObject>(isJsonObject)
  .transform((object) => Object.entries(object))
  .pipe(z.array(z.tuple([text, z.union([text, z.number(), z.boolean(), z.null()])])))
  .transform((entries) => Object.fromEntries(entries));

const log: z.ZodType<LogLine> = z.object({
  level: z.enum(logLevels),
  text,
  fields: optional(fields),
});

const partialResult = z.unknown().refine((value) => isPlain(value, maxDepth));

/** How far a tool is: `done` of `total`, in units of its own. */
export interface Progress {
  readonly done: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** A line of a tool's log. */
export interface LogLine {
  readonly level: (typeof logLevels)[number];
  readonly text: string;
  readonly fields?: Readonly<Record<string, string | number | boolean | null>> | undefined;
}

/** Members without a value are absent. */
export interface StatusDetails {
  readonly progress?: Progress;
  readonly log?: LogLine;
  /** Data, as a result is: its texts are unchanged. */
  readonly partialResult?: unknown;
}

/** Receives each status of a call. */
export type StatusListener = (text: string, details?: StatusDetails) => void;

/**
 * The valid details among untrusted members; undefined without any. An invalid detail is dropped
 * whole, and unknown members are.
 */
export function readStatusDetails(members: JsonObject): StatusDetails | undefined {
  const details: StatusDetails = {
    ...parsed("progress", progress, members["progress"]),
    ...parsed("log", log, members["log"]),
    ...parsed("partialResult", partialResult, members["partial_result"]),
  };
  return Object.keys(details).length === 0 ? undefined : details;
}

/** The details as members of `params`. */
export function encodeStatusDetails(details: StatusDetails): object {
  const { partialResult, ...rest } = details;
  return { ...rest, ...(partialResult !== undefined && { partial_result: partialResult }) };
}

function parsed(name: keyof StatusDetails, schema: z.ZodType, value: unknown): object {
  if (value === undefined || value === null) return {};
  const { data } = schema.safeParse(value);
  return data === undefined ? {} : { [name]: data };
}

/** Whether all numbers are finite, all texts are well-formed, and the nesting has an end. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value);
    case "string":
      return value.isWellFormed();
    case "object":
      if (value === null) return true;
      return (
        depth > 0 &&
        Object.entries(value)
          .flat()
          .every((each) => isPlain(each, depth - 1))
      );
    default:
      return true;
  }
}
