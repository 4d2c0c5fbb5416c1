/**
 * A little chaos on Solace; test/full has more of it.
 */
import { test } from "vitest";
import { littleChaos } from "../../support/chaos/options.ts";
import { expectPromisesKept } from "../../support/chaos/report.ts";
import { startChaosSmfBroker } from "../../support/chaos/wire/smf.ts";
import { makeChaos } from "../../support/chaos/chaos.ts";

test(
  "every call is answered, and none runs twice that must not, whoever is killed meanwhile",
  { tags: ["full", "promise-B5"], timeout: 300_000 },
  async () => {
    await using broker = await startChaosSmfBroker();
    expectPromisesKept(await makeChaos(broker, "test/chaos", littleChaos));
  },
);
