/**
 * What tests read of an audit log.
 */
import { readFile } from "node:fs/promises";
import { expect, vi } from "vitest";
import { patience } from "../patience.ts";

export type AuditFacts = Readonly<Record<string, unknown>>;

/** The lines of a text, each of which is JSON. */
export function auditLinesOf(text: string): readonly AuditFacts[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as AuditFacts);
}

/** The lines of a file once it has so many calls that ended. */
export async function auditLines(path: string, calls: number): Promise<readonly AuditFacts[]> {
  return vi.waitFor(async () => {
    const lines = auditLinesOf(await readFile(path, "utf8"));
    expect(lines.filter(({ event }) => event === "call.end")).toHaveLength(calls);
    return lines;
  }, patience);
}
