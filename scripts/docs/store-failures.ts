/**
 * Failures of stores of objects: what the message says, its cause, and what the operator does.
 */
import { reasons } from "../../worker/artifacts/objects/reasons.ts";

type Row = readonly [cause: string, advice: string];

/** Each reason has a row. */
const rows: Readonly<Record<keyof typeof reasons, Row>> = {
  noBucket: ["`ARTIFACT_S3_BUCKET`, `ARTIFACT_GCS_BUCKET`", "create it, or correct the name"],
  noRegion: ["no `ARTIFACT_S3_REGION`, and none of the SDK's", "set one of them"],
  elsewhere: ["`ARTIFACT_S3_REGION`", "correct it"],
  expired: ["temporary credentials in the environment", "give the worker a role"],
  denied: [
    "wrong credentials, or a permission is missing",
    "compare with [Permissions](#permissions)",
  ],
  noCredentials: ["no source has any", "set one of the sources of the store"],
  skewedClock: ["15 minutes and more", "set the clock"],
  busy: [
    "it throttles (503, 429), also after repeated requests",
    "fewer concurrent calls, or more prefixes",
  ],
  away: ["the connection is refused or cut", "endpoint, network"],
  untrusted: [
    "an authority that Node does not know, another host name, an expired certificate",
    "`NODE_EXTRA_CA_CERTS`, endpoint",
  ],
  silent: ["no connection in 5 s, or no byte in 20 s", "the server"],
  damaged: ["a checksum differs", "call again; look at what lies between"],
  gone: ["a lifecycle rule, another client", "call again with a version that exists"],
  tooLarge: ["the server's limit", "smaller files, or a lower `ARTIFACT_MAX_BYTES`"],
};

/** Messages that no reason is for. */
const others: readonly (readonly [message: string, ...Row])[] = [
  ["others keep taking its versions", "many savers of one name", "other names"],
  [
    "the connection is cut again and again",
    "six times without a byte between them",
    "what lies between",
  ],
  [
    "the artifact store failed with status 501",
    "the server does not know Amazon's checksums",
    "`ARTIFACT_S3_CHECKSUMS=required`",
  ],
  [
    "the artifact store failed with status N",
    "a server's fault, or a request that it does not know",
    "the SDK's error in the worker's log",
  ],
  ["the artifact store failed", "anything else", "likewise"],
];

/** The rows of the table: message, cause, advice. */
export const storeFailures: readonly (readonly string[])[] = [
  ...Object.entries(rows).map(([name, row]) => [reasons[name as keyof typeof rows], ...row]),
  ...others,
].map(([message = "", ...row]) => [`\`${message}\``, ...row]);
