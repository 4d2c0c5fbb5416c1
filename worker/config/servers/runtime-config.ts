/**
 * The variables of a runtime that a worker serves to other processes, and its configuration.
 */
import type { z } from "zod";
import { isLoopback } from "../../support/loopback.ts";
import type { Environment } from "../variable-aliases.ts";
import {
  absolutePath,
  optional,
  secret,
  text,
  wholeNumber,
  withDefault,
} from "../variable-kinds.ts";

const minTokenLength = 32;
const defaultHost = "127.0.0.1";

/** In the order of the documentation. */
export const runtimeVariables = {
  RUNTIME_PORT: withDefault(
    wholeNumber(0, 65_535),
    "a port, 1 to 65535, or 0 for none",
    "0",
    "Port at which programs [execute code](runtime-remote.md) in sandboxes of this worker.",
  ),
  RUNTIME_HOST: withDefault(
    text.min(1),
    "a host name or address",
    defaultHost,
    "Address of that port. Another than loopback needs `RUNTIME_TOKEN` and `RUNTIME_TLS_CERT`.",
  ),
  RUNTIME_TOKEN: secret(
    text.min(minTokenLength),
    `at least ${minTokenLength} characters`,
    "Callers have to send it, such as that of `openssl rand -base64 32`. Unset: all programs of this machine may execute code.",
  ),
  RUNTIME_TLS_CERT: optional(
    absolutePath,
    "an absolute path",
    "PEM file with the certificate of the port. Unset: no TLS.",
  ),
  RUNTIME_TLS_KEY: optional(
    absolutePath,
    "an absolute path",
    "PEM file with the key of `RUNTIME_TLS_CERT`, required with it.",
  ),
};

/** Where a worker serves its runtime. */
export interface RuntimeConfig {
  readonly port: number;
  readonly host: string;
  readonly token: string | undefined;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
}

/** Problems with the combination of the variables, one line each. */
export function runtimeProblems(environment: Environment): readonly string[] {
  const { RUNTIME_PORT = "0", RUNTIME_HOST: host = defaultHost } = environment;
  const { RUNTIME_TOKEN, RUNTIME_TLS_CERT, RUNTIME_TLS_KEY } = environment;
  const isHalf = (RUNTIME_TLS_CERT === undefined) !== (RUNTIME_TLS_KEY === undefined);
  if (isHalf) return ["RUNTIME_TLS_CERT, RUNTIME_TLS_KEY: set both or none"];
  const isProtected = RUNTIME_TOKEN !== undefined && RUNTIME_TLS_CERT !== undefined;
  if (RUNTIME_PORT === "0" || isProtected || isLoopback(host)) return [];
  const needed = "needs RUNTIME_TOKEN and RUNTIME_TLS_CERT";
  return [`RUNTIME_HOST: "${host}" ${needed}; without them accepted: ${defaultHost}`];
}

/** Undefined without a port. */
export function runtimeConfig(
  values: z.infer<z.ZodObject<typeof runtimeVariables>>,
): RuntimeConfig | undefined {
  const { RUNTIME_PORT: port, RUNTIME_HOST: host, RUNTIME_TOKEN: token } = values;
  const { RUNTIME_TLS_CERT: certFile, RUNTIME_TLS_KEY: keyFile } = values;
  if (port === 0) return undefined;
  const tls = certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
  return { port, host, token, tls };
}
