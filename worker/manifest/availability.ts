/**
 * Separates the available tools of a manifest from those with a missing package or file.
 */
import { isDeepStrictEqual } from "node:util";
import type { Refusal } from "../protocol/refusal.ts";
import type { Manifest, ToolEntry } from "./manifest.ts";

/** Why a tool is not served; undefined when it is. A rejection counts as a reason. */
export type AdmitTool = (
  tool: ToolEntry,
  signal: AbortSignal,
) => Promise<Refusal | undefined> | undefined;

/**
 * The manifest; tools that `admit` refuses become unavailable with the reason. Tools that `served`
 * serves by the same entry are not checked again. A refusal with `keepsServed` leaves the entry of
 * `served` in force. Rejects only with the signal's reason.
 */
export async function withoutRefused(
  manifest: Manifest,
  served: Manifest,
  admit: AdmitTool,
  signal: AbortSignal,
): Promise<Manifest> {
  const tools = new Map<string, ToolEntry>();
  const unavailable = new Map(manifest.unavailable);
  for (const tool of manifest.tools.values()) {
    const isServed = isDeepStrictEqual(served.tools.get(tool.name), tool);
    const refusal = isServed ? undefined : await refusalOf(tool, admit, signal);
    const kept = refusal?.keepsServed === true ? served.tools.get(tool.name) : undefined;
    if (refusal === undefined) tools.set(tool.name, tool);
    else if (kept !== undefined) tools.set(tool.name, kept);
    else unavailable.set(tool.name, { ...refusal, entry: tool });
  }
  return { revision: manifest.revision, tools, unavailable };
}

async function refusalOf(
  tool: ToolEntry,
  admit: AdmitTool,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  signal.throwIfAborted();
  try {
    return await admit(tool, signal);
  } catch (error) {
    signal.throwIfAborted();
    const reason = `could not be checked: ${error instanceof Error ? error.message : String(error)}`;
    return { reason, publicReason: "the worker could not check it" };
  }
}
