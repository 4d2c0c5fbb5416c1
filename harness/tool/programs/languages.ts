/**
 * The languages of programs that call tools.
 */
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";

/** Languages of stubs. */
export const stubLanguages = ["typescript", "python"] as const;

export type StubLanguage = (typeof stubLanguages)[number];

/** The language that an entry's code is written in. */
export function languageOf({ runtime }: Pick<ToolEntry, "runtime">): StubLanguage {
  return runtime === "python" ? "python" : "typescript";
}
