/**
 * Names of environment variables that a manifest may give a sandbox.
 */
import { z } from "zod";
import { describeValue, whenFineSoFar } from "../../support/text/expectation.ts";

/**
 * Variables that the sandbox sets, or that change interpreter, loader, OpenSSL or shells in it:
 * `ld.so(8)`, `python(1)`, `node(1)`.
 */
const reservedEnv =
  /^(?:LD_.*|PYTHON.*|NODE_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|OPENSSL_(?:CONF|MODULES|ENGINES)|BASH_ENV|ENV|PATH|HOME|TMPDIR|TOOL_PACKAGES_DIR)$/;

/** Does not repeat the value: the likely mistake is `NAME=value`. */
const envName = {
  error: () =>
    "expected the name of an environment variable (letters, digits and _), without value",
};
const envReserved = {
  error: ({ input }: { input?: unknown }) =>
    `${describeValue(input)} cannot be passed on: it is set by the sandbox or changes how programs load in it`,
};

/** The name of one. */
export const envNameField = z
  .string(envName)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, envName)
  .refine((name) => !reservedEnv.test(name), { ...envReserved, ...whenFineSoFar });
