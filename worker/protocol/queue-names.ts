/**
 * Names of the queues that calls wait in.
 */

/** The group of a worker that names none. */
export const defaultGroup = "default";

/** The queue of a group for tools that name none. */
export const defaultQueue = "default";

/** What names a queue of a group. */
export const queuePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$/;

/** Prefix of all queues of a namespace. */
export function queuePrefix(namespace: string): string {
  return `${namespace.replace(/\/+$/, "")}/q/sandbox/`;
}

/**
 * A queue of a worker group: `{namespace}/q/sandbox/{group}`, and for others than the default queue
 * `/{queue}` after it.
 */
export function groupQueue(namespace: string, group: string, queue: string): string {
  const name = `${queuePrefix(namespace)}${group}`;
  return queue === defaultQueue ? name : `${name}/${queue}`;
}
