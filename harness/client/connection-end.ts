/**
 * The end of a session, as those are told it who needed the session.
 */
import { BrokerError, type SessionEnd } from "../../worker/broker/broker.ts";

/** The error that calls fail with from then on. */
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
