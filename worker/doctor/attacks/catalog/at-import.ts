/**
 * Why attacks are not promised to be held when an import in a template makes them, for several of
 * them.
 */

/** What is made inside has to be made by somebody who may make it. */
export const makesSandboxes = "a template makes its sandboxes, and so namespaces and mounts";

/**
 * The kernel gives nobody a /proc who has none already over which nothing lies
 * (mount_namespaces(7)).
 */
export const hasWholeProc =
  "a template has a whole /proc that it can write to, or its sandboxes could have none of their own";
