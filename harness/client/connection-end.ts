/**
 * The error of a session that has ended.
 */
import { BrokerError, type SessionEnd } from "../../worker/broker/broker.ts";

/** The error of all later calls. */
export function connectionEnd({ reason, cause }: SessionEnd): BrokerError {
  if (reason === "asked") {
    return new BrokerError("The connection to the broker was closed", { transient: false });
  }
  const why = cause instanceof Error ? `: ${cause.message}` : "";
  return new BrokerError(`The connection to the broker was lost${why}`, {
    cause,
    transient: false,
  });
}
