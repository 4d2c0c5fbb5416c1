/**
 * Bounds of programs, for those that load no schemas.
 */

/** Largest source of a program, in bytes. */
export const maxCodeBytes = 256 * 1024;
