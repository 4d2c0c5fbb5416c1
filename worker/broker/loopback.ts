/**
 * Hosts that are this machine.
 */

/** Whether a host, as a URL spells it, is this machine. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || /^\[?::1\]?$/.test(host) || /^127\.\d+\.\d+\.\d+$/.test(host);
}
