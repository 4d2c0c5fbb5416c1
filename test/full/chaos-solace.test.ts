/**
 * A thousand calls on Solace, while workers are killed, connections cut, manifests changed and the
 * broker is restarted.
 *
 * @module-tag full
 */
import { describe, test } from "vitest";
import { newNamespace } from "../integration/amqp/node.ts";
import { chaosRuns, chaosTimeoutMs } from "../support/chaos-options.ts";
import { expectPromisesKept } from "../support/chaos-report.ts";
import { startChaosSmfBroker } from "../support/chaos-smf.ts";
import { makeChaos } from "../support/chaos.ts";

describe("a group of workers on Solace answers every call, and repeats none that must not be", () => {
  test.each(chaosRuns)(
    "%s",
    async (_, options) => {
      await using broker = await startChaosSmfBroker();
      expectPromisesKept(await makeChaos(broker, newNamespace(), options));
    },
    chaosTimeoutMs,
  );
});
