/**
 * Names of the queues for calls.
 */

/** Group of a worker without a configured one. */
export const defaultGroup = "default";

/** Queue of tools without a configured one. */
export const defaultQueue = "default";

/** Valid names of a queue within a group. */
export const queuePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$/;

/** Prefix of all queues of a namespace. */
export function queuePrefix(namespace: string): string {
  return `${namespace.replace(/\/+$/, "")}/q/sandbox/`;
}

/** `{namespace}/q/sandbox/{group}` for the default queue; others append `/{queue}`. */
export function groupQueue(namespace: string, group: string, queue: string): string {
  const name = `${queuePrefix(namespace)}${group}`;
  return queue === defaultQueue ? name : `${name}/${queue}`;
}
