/**
 * A thousand calls on Solace while workers are ended, connections cut, manifests changed and the broker is restarted.
 *
 * @module-tag full
 */
import { describe, test } from "vitest";
import { newNamespace } from "../integration/amqp/node.ts";
import { chaosRuns, chaosTimeoutMs } from "../support/chaos-options.ts";
import { expectPromisesKept } from "../support/chaos-report.ts";
import { startChaosSmfBroker } from "../support/chaos-smf.ts";
import { makeChaos } from "../support/chaos.ts";

describe("every call is answered, and none runs twice that must not, whoever is killed meanwhile, on Solace", () => {
  test.each(chaosRuns)(
    "%s",
    async (_, options) => {
      await using broker = await startChaosSmfBroker();
      expectPromisesKept(await makeChaos(broker, newNamespace(), options));
    },
    chaosTimeoutMs,
  );
});
