/**
 * What holds unless one says otherwise, apart from the parts that use it: help shows it, and loads
 * none of them.
 */

/** The port of a DevBroker that nobody said the port of. */
export const defaultPort = 55_555;

/** What agents grant a tool that their configuration does not say otherwise of. */
export const defaultTimeoutSeconds = 300;

/** The profile that agents ask for when their configuration names none. */
export const defaultProfile = "standard";

/** Who calls when the call does not say. */
export const defaultUserId = "harness";
export const defaultSessionId = "harness";

/** What names a broker, for help and errors. */
export const acceptedBrokers =
  "HOST:PORT of a DevBroker, dev://HOST:PORT, amqp[s]://USER:PASSWORD@HOST:PORT/VHOST, " +
  "tcp[s]:// or ws[s]://USER:PASSWORD@HOST:PORT/VPN for Solace, or dev, amqp or solace by the worker's variables";
