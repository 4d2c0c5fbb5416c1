/**
 * The variables of the console, and its configuration.
 */
import type { z } from "zod";
import { isLoopback } from "../../support/loopback.ts";
import type { Environment } from "../variable-aliases.ts";
import { secret, text, wholeNumber, withDefault } from "../variable-kinds.ts";

/** Wrong tokens are not counted: who counts can be made to refuse the right one. */
const minTokenLength = 32;
const defaultHost = "127.0.0.1";

/** In the order of the documentation. */
export const consoleVariables = {
  CONSOLE_PORT: withDefault(
    wholeNumber(0, 65_535),
    "a port, 1 to 65535, or 0 for none",
    "0",
    "Port of the [console](console.md).",
  ),
  CONSOLE_HOST: withDefault(
    text.min(1),
    "a host name or address",
    defaultHost,
    "Address of the console. Another than loopback needs `CONSOLE_TOKEN`.",
  ),
  CONSOLE_TOKEN: secret(
    text.min(minTokenLength),
    `at least ${minTokenLength} characters`,
    "The console asks for it, such as that of `openssl rand -base64 32`. Unset: the worker makes one, and logs a link with it.",
  ),
};

/** Where the console listens. */
export interface ConsoleConfig {
  readonly port: number;
  readonly host: string;
  /** Undefined for one that the worker makes. */
  readonly token: string | undefined;
}

/** Problems with the combination of the variables, one line each. */
export function consoleProblems(environment: Environment): readonly string[] {
  const { CONSOLE_HOST: host = defaultHost, CONSOLE_TOKEN, CONSOLE_PORT = "0" } = environment;
  if (CONSOLE_PORT === "0" || CONSOLE_TOKEN !== undefined || isLoopback(host)) return [];
  return [`CONSOLE_HOST: "${host}" needs CONSOLE_TOKEN; without one accepted: ${defaultHost}`];
}

/** Undefined without a console. */
export function consoleConfig(
  values: z.infer<z.ZodObject<typeof consoleVariables>>,
): ConsoleConfig | undefined {
  const { CONSOLE_PORT: port, CONSOLE_HOST, CONSOLE_TOKEN: token } = values;
  // Sockets have addresses without the brackets of URLs.
  return port === 0 ? undefined : { port, host: CONSOLE_HOST.replace(/^\[|\]$/g, ""), token };
}
