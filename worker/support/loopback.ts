/**
 * Hosts that are this machine.
 */

export function isLoopback(host: string): boolean {
  return host === "localhost" || /^\[?::1\]?$/.test(host) || /^127\.\d+\.\d+\.\d+$/.test(host);
}
