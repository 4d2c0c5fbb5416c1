/**
 * The shapes of tools that `tool new` makes, by language.
 */
import type { Runtime } from "../../../worker/manifest/manifest.ts";

/** Shapes of Python tools. */
export const pythonShapes = ["function", "async", "class", "provider"] as const;
/** Shapes of Node tools: every function may be asynchronous. */
export const nodeShapes = ["function"] as const;
/** Languages of executables. */
export const executableShapes = ["shell", "go"] as const;

/** The shapes of a language; the first one where none is named. */
export const shapesOf = {
  python: pythonShapes,
  node: nodeShapes,
  executable: executableShapes,
} as const satisfies Readonly<Record<Runtime, readonly string[]>>;

/** A shape of any language. */
export type Shape = (typeof shapesOf)[Runtime][number];

/** Every shape, for the command line. */
export const allShapes: readonly Shape[] = [...new Set(Object.values(shapesOf).flat())];
