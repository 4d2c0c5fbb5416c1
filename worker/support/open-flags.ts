/**
 * Flags of open(2) that Node lacks.
 */

/** O_PATH: a descriptor of a path without opening the file; the same number on all systems. */
export const O_PATH = 0x20_0000;
