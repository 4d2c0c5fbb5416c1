/**
 * Addresses that executions may go over.
 */
import { isLoopback } from "../../support/loopback.ts";

/**
 * What is missing for another host than this one, which needs a token and TLS: whoever reads the
 * connection could else run code. Undefined: nothing.
 */
export function missingFor(
  host: string,
  { hasToken, hasTls }: { readonly hasToken: boolean; readonly hasTls: boolean },
): string | undefined {
  if (isLoopback(host) || (hasToken && hasTls)) return undefined;
  if (hasToken) return "TLS";
  return hasTls ? "a token" : "a token and TLS";
}
