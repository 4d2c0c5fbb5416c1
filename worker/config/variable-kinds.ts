/**
 * What environment variables are made of: kinds of values, and what documents and errors say of
 * each.
 */
import { z } from "zod";
import { sourcePattern, toSource } from "../protocol/credential.ts";

/** What documents and errors say of a variable. */
export interface VariableFacts {
  /** What is accepted. */
  readonly accepted: string;
  readonly description: string;
  /** Whether its value is kept out of errors. */
  readonly isSecret: boolean;
}

export const text = z.string();
export const absolutePath = z.string().startsWith("/");
export const absolutePaths = z
  .string()
  .regex(/^\/[^:]*(?::\/[^:]*)*$/)
  .transform((paths) => paths.split(":"));
/** Sources of credentials; directories without a slash at their end. */
export const credentialSources = z
  .string()
  .transform((list) => (list === "none" ? [] : list.split(",")))
  .pipe(
    z.array(
      z
        .string()
        .regex(sourcePattern)
        .transform((one) => toSource(one.replace(/(?<=[^:])\/+$/, ""))),
    ),
  );
/** Paths by names that do not look like paths, each name once; or other words in their place. */
export function namedPaths(...words: readonly string[]): z.ZodType<Map<string, string>, string> {
  const entry = `[A-Za-z0-9][\\w.+-]{0,63}=(?:${["/[^,]+", ...words].join("|")})`;
  return z
    .string()
    .regex(new RegExp(`^${entry}(?:,${entry})*$`))
    .transform((list) => list.split(",").map((text) => text.split(/=(.*)/s, 2)))
    .refine((entries) => new Set(entries.map(([name]) => name)).size === entries.length)
    .transform((entries) => new Map(entries.map(([name = "", path = ""]) => [name, path])));
}

export function wholeNumber(min: number, max: number): z.ZodType<number, string> {
  return z.string().regex(/^\d+$/).transform(Number).pipe(z.int().min(min).max(max));
}

export const port = wholeNumber(1, 65_535);

/** Most that is accepted of what is counted. */
export const maxCount = 10_000;

const facts = z.registry<VariableFacts>();

export function required<T extends z.ZodType>(schema: T, accepted: string, description: string): T {
  facts.add(schema, { accepted, description, isSecret: false });
  return schema;
}

export function optional<T extends z.ZodType>(
  schema: T,
  accepted: string,
  description: string,
): z.ZodOptional<T> {
  return required(schema.optional(), accepted, description);
}

/** An optional variable whose value no error repeats. */
export function secret<T extends z.ZodType>(
  schema: T,
  accepted: string,
  description: string,
): z.ZodOptional<T> {
  const hidden = schema.optional();
  facts.add(hidden, { accepted, description, isSecret: true });
  return hidden;
}

/** @param text the default, as the environment would spell it */
export function withDefault<T extends z.ZodType<unknown, string>>(
  schema: T,
  accepted: string,
  text: z.input<T>,
  description: string,
): z.ZodPrefault<T> {
  return required(schema.prefault(text as never), accepted, description);
}

/** What was said of a variable. */
export function factsOf(schema: z.ZodType): VariableFacts {
  return facts.get(schema) ?? { accepted: "", description: "", isSecret: false };
}

/** The default of a variable as the environment would spell it; undefined when there is none. */
export function defaultOf(schema: z.ZodType): string | undefined {
  return schema instanceof z.ZodPrefault ? String(schema.def.defaultValue) : undefined;
}
