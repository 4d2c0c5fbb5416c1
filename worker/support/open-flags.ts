/**
 * Flags of open(2) that Node has no name for.
 */

/** A descriptor that names what is at a path without opening that. Its number is one everywhere. */
export const O_PATH = 0x20_0000;
