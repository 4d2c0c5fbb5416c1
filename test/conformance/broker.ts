/**
 * What every broker adapter has to do (`worker/broker/broker.ts`): run `describeBroker` for each of
 * them, one's own included.
 */
import { describe } from "vitest";
import { describeBackPressure } from "./broker/back-pressure.ts";
import { describeEnding } from "./broker/ending.ts";
import { describeGroups } from "./broker/groups.ts";
import { describePublishing } from "./broker/publishing.ts";
import { describeRedelivery } from "./broker/redelivery.ts";
import { describeSharing } from "./broker/sharing.ts";
import { describeSubscriptions } from "./broker/subscriptions.ts";
import type { BrokerCapabilities, CreateBroker } from "./broker/under-test.ts";
import { describeWork } from "./broker/work.ts";

export type {
  BrokerCapabilities,
  BrokerTestOptions,
  BrokerUnderTest,
  CreateBroker,
  GroupOptions,
  HeardMessage,
  Peer,
} from "./broker/under-test.ts";
export { hear, pull, textOf } from "./broker/under-test.ts";

/**
 * Describes a broker as vitest tests.
 *
 * `create` is called inside each test; the test disposes what it made. What `capabilities` denies
 * is reported as skipped.
 */
export function describeBroker(
  name: string,
  options: { readonly create: CreateBroker; readonly capabilities: BrokerCapabilities },
): void {
  const suite = { name, ...options };
  describe(`the ${name} broker`, () => {
    describeWork(suite);
    describePublishing(suite);
    describeEnding(suite);
    describeSharing(suite);
    describeGroups(suite);
    describeRedelivery(suite);
    describeBackPressure(suite);
    describeSubscriptions(suite);
  });
}
