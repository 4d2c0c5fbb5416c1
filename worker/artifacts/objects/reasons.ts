/**
 * Public reasons of failed requests to an object store. They name no bucket, key, endpoint or
 * credential.
 */

/** What went wrong, for callers. */
export const reasons = {
  denied: "the artifact store denies access",
  busy: "the artifact store is busy",
  away: "the artifact store cannot be reached",
  silent: "the artifact store does not answer",
  untrusted: "the artifact store's certificate is not trusted",
  noBucket: "its bucket does not exist",
  noRegion: "the region of its bucket is not configured",
  elsewhere: "its bucket is in another region",
  expired: "the worker's credentials for the artifact store have expired",
  noCredentials: "the worker has no credentials for the artifact store",
  skewedClock: "the worker's clock and the artifact store's differ too much",
  tooLarge: "the artifact store takes no object of this size",
  damaged: "the content was damaged on its way",
  gone: "it was deleted or replaced while it was read",
} as const;

const byStatus: ReadonlyMap<number, string> = new Map([
  [401, reasons.denied],
  [403, reasons.denied],
  [429, reasons.busy],
  [503, reasons.busy],
]);

/** Codes of Node and OpenSSL: Node.js, "TLS: X509 certificate error codes". */
const codesOfCertificates = /CERT|LEAF_SIGNATURE|HOSTNAME_MISMATCH/;

/**
 * Whether an answer's status says that nothing came of the request. A busy server, or one that has
 * waited too long for the request, may have carried out an earlier one.
 */
export function isRefusal(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && ![408, 429].includes(status);
}

/** The reason of an answer's status, or without an answer that of an error's code. */
export function reasonOfRequest(status: number | undefined, code: unknown): string {
  const known = byStatus.get(status ?? 0);
  if (known !== undefined) return known;
  if (status !== undefined && status >= 400)
    return `the artifact store failed with status ${status}`;
  if (typeof code !== "string") return "the artifact store failed";
  if (codesOfCertificates.test(code)) return reasons.untrusted;
  return /^E[A-Z]/.test(code) ? reasons.away : "the artifact store failed";
}
