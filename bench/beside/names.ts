/**
 * Names of tools that a comparison of two workers has, and its table looks for.
 */

/** The least that a tool can be. */
export const lightTool = "Python light";

/** One that imports a large library with extension modules. */
export const pandasTool = "Python with pandas";
