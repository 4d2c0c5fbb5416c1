/**
 * A file with the source of a program.
 */
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { ProgramLanguage } from "../../../worker/protocol/tool-calls/program.ts";
import { maxCodeBytes } from "../../../worker/protocol/tool-calls/program-limits.ts";
import { UsageError } from "../../context.ts";

/** A program. */
export interface ProgramFile {
  /** As it was given. */
  readonly path: string;
  readonly language: ProgramLanguage;
  readonly code: string;
}

const languages: Readonly<Record<string, ProgramLanguage>> = {
  ".py": "python",
  ".ts": "typescript",
  ".mts": "typescript",
  ".js": "javascript",
  ".mjs": "javascript",
};

/** Reads it. Throws UsageError. */
export async function readProgramFile(path: string): Promise<ProgramFile> {
  const language = languages[extname(path)];
  if (language === undefined) {
    const known = Object.keys(languages).join(", ");
    throw new UsageError(`${path} is in no language of programs; its name must end in ${known}`);
  }
  const bytes = await readFile(path).catch((error: unknown) => {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    throw new UsageError(`${path} cannot be read: ${code}`, { cause: error });
  });
  if (bytes.length > maxCodeBytes) {
    const problem = `${path} has ${bytes.length} bytes; a program has at most ${maxCodeBytes}`;
    throw new UsageError(problem);
  }
  return { path, language, code: bytes.toString("utf8") };
}
