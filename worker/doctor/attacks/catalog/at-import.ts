/**
 * Shared reasons for attacks that are not promised to be blocked at import, in a template.
 */

/** A template needs the privileges to make its sandboxes. */
export const makesSandboxes = "a template makes its sandboxes, and so namespaces and mounts";

/** The kernel mounts a new /proc only beside one without overmounts (mount_namespaces(7)). */
export const hasWholeProc =
  "a template has a whole /proc that it can write to, or its sandboxes could have none of their own";
