/**
 * Connections that are not encrypted.
 */
import { logEvent } from "../telemetry/log-event.ts";
import type { BrokerLog } from "./log.ts";

/** Whether a host, as a URL spells it, is this machine. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || /^\[?::1\]?$/.test(host) || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Logs `host`, so there must be no password in it. */
export function warnOfClearText(log: BrokerLog, host: string): void {
  logEvent(log, "broker.connection_unencrypted", { host });
}
