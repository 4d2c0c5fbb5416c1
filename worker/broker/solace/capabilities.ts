/**
 * What the broker, and the client profile of the user on it, have to be capable of.
 */
import solace from "solclientjs";

/** Each with what to do where it is missing. */
const needed: ReadonlyMap<solace.CapabilityType, string> = new Map([
  [
    solace.CapabilityType.GUARANTEED_MESSAGE_PUBLISH,
    "does not let the user send guaranteed messages: allow it in its client profile",
  ],
  [
    solace.CapabilityType.GUARANTEED_MESSAGE_CONSUME,
    "does not let the user receive guaranteed messages: allow it in its client profile",
  ],
  [
    solace.CapabilityType.AD_APP_ACK_FAILED,
    "cannot take messages back that were not handled: version 10.2.1 or newer is needed",
  ],
]);

/** What a broker lacks, as the end of a sentence about it; undefined when it has everything. */
export function missingCapability(
  isCapable: (capability: solace.CapabilityType) => boolean,
): string | undefined {
  return needed.entries().find(([capability]) => !isCapable(capability))?.[1];
}
