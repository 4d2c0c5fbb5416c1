/**
 * What the network and the broker report, as BrokerErrors.
 */
import { BrokerError } from "../broker.ts";
import type { Answer } from "./wire.ts";

export function refusal(command: string, answer: Exclude<Answer, { status: "OK" }>): BrokerError {
  switch (answer.status) {
    case "ERROR":
      return new BrokerError(`The broker refused ${command}: ${answer.code}: ${answer.message}`, {
        transient: answer.code !== "INVALID_COMMAND",
      });
    case "UNREADABLE": {
      const message = `The answer to ${command} is not one of a DevBroker: ${answer.reason}`;
      return new BrokerError(message, { transient: false });
    }
    case "TIMEOUT":
      return new BrokerError(`The broker answered ${command} with TIMEOUT`, { transient: true });
  }
}
