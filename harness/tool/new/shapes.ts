/**
 * The shapes of tools that `tool new` makes, by language.
 */
import type { Runtime } from "../../../worker/manifest/manifest.ts";

/** Shapes of Python tools. */
export const pythonShapes = ["function", "async", "class"] as const;
/** Shapes of Node tools: every function may be asynchronous. */
const nodeShapes = ["function"] as const;

/** A shape of any language. */
export type Shape = (typeof pythonShapes)[number];

/** Every shape, for the command line. */
export const allShapes: readonly Shape[] = pythonShapes;

/** The shapes of a language. */
export const shapesOf: Readonly<Record<Runtime, readonly Shape[]>> = {
  python: pythonShapes,
  node: nodeShapes,
  executable: [],
};
