/** Whether the tests run as root. */
export const isRoot = process.getuid?.() === 0;
