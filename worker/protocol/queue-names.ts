/**
 * How the queues are called that calls wait in.
 */

/** What all of them begin with. */
export function queuePrefix(namespace: string): string {
  return `${namespace.replace(/\/+$/, "")}/q/sandbox/`;
}

/** The queue of a tool, which the workers that serve it share. */
export function toolQueue(namespace: string, toolName: string): string {
  return `${queuePrefix(namespace)}tool/${toolName}`;
}

/** The queue of one worker, where it has one for all of its tools. */
export function workerQueue(namespace: string, workerId: string): string {
  return `${queuePrefix(namespace)}${workerId}`;
}
