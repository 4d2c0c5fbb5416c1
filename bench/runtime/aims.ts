/**
 * Names of the library's rows, and their aims: multiples of other rows of the same run.
 */
import type { Aim } from "../comparison.ts";
import { floorRow } from "../names.ts";

/** From `execute` to the value. */
export const wasmRow = "wasm, JavaScript";
export const bubblewrapRows = {
  javascript: "bubblewrap, JavaScript",
  python: "bubblewrap, Python",
} as const;
export const dockerRow = "docker, Python";

/** The Engine's own work for the same container. */
export const engineRow = "the Engine API alone: create, start, wait, remove";
export const unremovedRow = "the same without the removal";

/** What rows may take. */
export const aims: readonly Aim[] = [
  { row: wasmRow, of: floorRow, factor: 10, floors: 0 },
  { row: dockerRow, of: engineRow, factor: 1.15, floors: 0 },
];
