/**
 * The languages of code that calls tools.
 */
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import type { ProgramLanguage } from "../../../worker/protocol/tool-calls/program.ts";

/** Languages of stubs. */
export const stubLanguages = ["typescript", "python"] as const;

export type StubLanguage = (typeof stubLanguages)[number];

/** The languages of an entry's code, or of the programs that it runs. */
export function languagesOf({
  runtime,
  languages,
}: Pick<ToolEntry, "runtime" | "languages">): readonly ProgramLanguage[] {
  return languages ?? [runtime === "python" ? "python" : "typescript"];
}

/** The languages of stubs for code. */
export function stubLanguagesOf(languages: readonly ProgramLanguage[]): readonly StubLanguage[] {
  const each = languages.map((one) => (one === "python" ? "python" : "typescript"));
  return [...new Set(each)];
}
