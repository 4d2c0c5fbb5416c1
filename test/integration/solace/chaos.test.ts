/**
 * A little chaos on Solace, with the number of deliveries that workers have unless told otherwise; test/full has more of it.
 */
import { expect, test } from "vitest";
import { ChaosAgent } from "../../support/chaos-agent.ts";
import { solaceDial } from "../../support/chaos-agent-solace.ts";
import { littleChaos } from "../../support/chaos-options.ts";
import { brokenPromises } from "../../support/chaos-report.ts";
import { startChaosSmfBroker } from "../../support/chaos-smf.ts";
import { makeChaos } from "../../support/chaos.ts";

const namespace = "test/chaos";

test("every call is answered, and none runs twice that must not, whoever is killed meanwhile", async () => {
  await using broker = await startChaosSmfBroker(namespace);
  await using agent = new ChaosAgent(namespace, solaceDial(broker.url));
  const report = await makeChaos(broker, agent, namespace, littleChaos);
  expect(brokenPromises(report, littleChaos)).toEqual([]);
}, 240_000);
