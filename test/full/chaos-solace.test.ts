/**
 * A thousand calls on Solace, while workers are killed, connections cut, manifests changed and the
 * broker is restarted.
 *
 * @module-tag full
 */
import { test } from "vitest";
import { newNamespace } from "../integration/amqp/node.ts";
import { chaosTimeoutMs, muchChaos } from "../support/chaos/options.ts";
import { expectPromisesKept } from "../support/chaos/report.ts";
import { startChaosSmfBroker } from "../support/chaos/wire/smf.ts";
import { makeChaos } from "../support/chaos/chaos.ts";

test(
  "a group of workers on Solace answers every call, and repeats none that must not be",
  async () => {
    await using broker = await startChaosSmfBroker();
    expectPromisesKept(await makeChaos(broker, newNamespace(), muchChaos));
  },
  chaosTimeoutMs,
);
