/**
 * The calls of a soak: of every start mode, some with artifacts.
 */
import type { ToolCall } from "../../harness/messages.ts";
import { callTimeoutSeconds } from "../environment.ts";
import { type BenchTool, artifactTool, nameOf, typicalPython } from "../tools.ts";

const pooledNode: BenchTool = { language: "JavaScript", weight: "typical", start: "pool" };
const coldPython: BenchTool = { language: "Python", weight: "light", start: "cold" };

/** Tools of the mix, beside the one with artifacts, which every manifest of a benchmark has. */
export const soakTools: readonly BenchTool[] = [typicalPython, pooledNode, coldPython];

const content = Buffer.from("0123456789".repeat(100));
const preloaded = new Map([
  ["data", { filename: "data.txt", version: 0, mimeType: "text/plain", bytes: content }],
]);
/** A session has few versions of an artifact, however long the soak: more take longer to list. */
const callsPerSession = 100;

/** Of ten calls in a row, the tool of each. */
const shares: readonly (readonly [tool: string, share: number])[] = [
  [nameOf(typicalPython), 6],
  [artifactTool, 2],
  [nameOf(pooledNode), 1],
  [nameOf(coldPython), 1],
];
const tools = shares.flatMap(([tool, share]) => Array.from({ length: share }, () => tool));
/** Has no common divisor with their number, so that each comes, and few in a row are alike. */
const stride = 3;

/** The tool of a call. */
export function toolOf(index: number): string {
  return tools[(index * stride) % tools.length] ?? artifactTool;
}

/** A call by its number. */
export function callOf(index: number): ToolCall {
  const tool = toolOf(index);
  const sessionId = `soak-${Math.floor(index / callsPerSession)}`;
  const common = { tool, sessionId, timeoutSeconds: callTimeoutSeconds };
  return tool === artifactTool ? { ...common, args: { data: "data.txt" }, preloaded } : common;
}
