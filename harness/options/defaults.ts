/**
 * Default values of options, in a file of their own, so that help loads no other code.
 */

/** Default port of a DevBroker. */
export const defaultPort = 55_555;

/** Default port of the console of `harness console`. */
export const defaultConsolePort = 8082;

/** Agents' default time limit of a tool. */
export const defaultTimeoutSeconds = 300;

/** Agents' default profile. */
export const defaultProfile = "standard";

/** Default caller. */
export const defaultUserId = "harness";
export const defaultSessionId = "harness";

/** Stores of the demo; the first is the default. */
export const demoStoreKinds = ["filesystem", "s3", "gcs"] as const;
export type DemoStoreKind = (typeof demoStoreKinds)[number];

/** Accepted brokers, for help and errors. */
export const acceptedBrokers =
  "HOST:PORT of a DevBroker, dev://HOST:PORT, amqp[s]://USER:PASSWORD@HOST:PORT/VHOST, " +
  "tcp[s]:// or ws[s]://USER:PASSWORD@HOST:PORT/VPN for Solace, or dev, amqp or solace by the worker's variables";
