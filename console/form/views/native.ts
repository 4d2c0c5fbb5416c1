/** How the browser's own validation expresses a schema of a text. */
import type { TextField } from "../field.ts";

type InputType = "text" | "email" | "url" | "date" | "password";

const typesByFormat: Readonly<Record<string, InputType>> = {
  email: "email",
  uri: "url",
  date: "date",
  password: "password",
};

/** The type of an input; undefined for texts that may have several lines. */
export function inputType(field: TextField): InputType | undefined {
  if (field.format !== null) return typesByFormat[field.format] ?? "text";
  return field.pattern !== null || (field.maxLength ?? Infinity) <= 100 ? "text" : undefined;
}

/**
 * The pattern of an input, which browsers anchor at both ends and schemas do not. Undefined for
 * patterns of other languages, which browsers would report and ignore.
 */
export function inputPattern(pattern: string | null): string | undefined {
  if (pattern === null) return undefined;
  const anchored = `[\\s\\S]*(?:${pattern})[\\s\\S]*`;
  try {
    new RegExp(pattern, "v");
    new RegExp(anchored, "v");
    return anchored;
  } catch {
    return undefined;
  }
}
