/**
 * The broker contract, kept by the Solace adapter against the broker of the harness, and against
 * one in another process: the one that SOLACE_TEST_URL (`tcp://host:port`), SOLACE_TEST_VPN,
 * SOLACE_TEST_USERNAME and SOLACE_TEST_PASSWORD name, which may be a real one, else `harness
 * smf-broker`. SOLACE_TEST_COUNTS_DELIVERIES is `true` where queues that clients make have
 * `deliveryCountEnabled`.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { startSmfBroker } from "../../harness/fakes/solace/broker.ts";
import { defaultGroup, defaultQueue, groupQueue } from "../../worker/protocol/queue-names.ts";
import { newId } from "../../worker/support/ids.ts";
import { CliProcess } from "../integration/harness/cli-process.ts";
import { openCable } from "../support/brokers/rabbitmq-proxy.ts";
import { type SolaceGiven, solaceBroker } from "../support/brokers/solace-options.ts";
import { describeBroker } from "./broker.ts";
import type { GroupOptions } from "./broker/under-test.ts";
import { connectSolacePeer } from "./peers/solace-peer.ts";

const capabilities = {
  shares: true,
  hasGroups: true,
  durable: true,
  redelivers: true,
  countsDeliveries: true,
  limitsDeliveries: true,
  limitsUnsettled: true,
  tellsUnroutable: true,
  reconnects: false,
};

const namespace = "test/solace";

describeBroker("solace", {
  capabilities,
  async create({ maxUnsettled, maxDeliveries = 20 } = {}) {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await startSmfBroker({ rejectsUnmatched: true }));
    // Only a limit of the queue keeps the library from prefetching one call more.
    const limitQueue = (group: string, queue: string, maxUnsettledPerFlow: number): void => {
      const address = groupQueue(namespace, group, queue);
      if (server.queue(address) !== undefined) return;
      server.createQueue(address, { accessType: "non-exclusive", maxUnsettledPerFlow });
    };
    if (maxUnsettled !== undefined) limitQueue(defaultGroup, defaultQueue, maxUnsettled);
    const cable = stack.use(await openCable(server.port));
    const peer = stack.use(await connectSolacePeer({ url: server.url }));
    const owned = stack.move();
    const host = `127.0.0.1:${cable.port}`;
    const common = { host, namespace, maxDeliveries, maxUnsettled: maxUnsettled ?? 64 };
    return {
      broker: solaceBroker(common),
      namespace,
      peer,
      brokerOf(options) {
        const { group = defaultGroup, queues = {} } = options;
        for (const [queue, limit] of Object.entries(queues)) limitQueue(group, queue, limit);
        return solaceBroker({ ...common, ...adapterOptions(options) });
      },
      cutConnections: () => cable.cut(),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  },
});

/** What `brokerOf` is given, for the adapter. */
function adapterOptions({ queues, ...options }: GroupOptions): Partial<SolaceGiven> {
  return { ...options, ...(queues && { queues: new Map(Object.entries(queues)) }) };
}

/** Groups and queues of the suite. */
const queuesOfSuite = [
  [defaultGroup, defaultQueue],
  [defaultGroup, "heavy"],
  ["reports", defaultQueue],
] as const;

const {
  SOLACE_TEST_URL: givenUrl,
  SOLACE_TEST_VPN: vpn = "default",
  SOLACE_TEST_USERNAME: username = "default",
  SOLACE_TEST_PASSWORD: password = "default",
  SOLACE_TEST_COUNTS_DELIVERIES: counts = givenUrl === undefined ? "true" : "false",
} = process.env;

describe("a Solace broker in another process", () => {
  let url: URL;
  const stack = new AsyncDisposableStack();

  beforeAll(async () => {
    url = new URL(givenUrl ?? (await startProcess()));
  });

  afterAll(() => stack.disposeAsync());

  async function startProcess(): Promise<string> {
    const command = stack.use(new CliProcess(["smf-broker", "--port", "0"]));
    const [, where = ""] = await command.said("stdout", /listens on (tcp:\/\/127\.0\.0\.1:\d+);/);
    return where;
  }

  describeBroker("distant solace", {
    // Queues that the worker makes have no limit of their own, and few brokers are set to count
    // deliveries, or to tell who listens.
    capabilities: {
      ...capabilities,
      countsDeliveries: counts === "true",
      limitsUnsettled: false,
      tellsUnroutable: false,
    },
    async create({ maxDeliveries = 20 } = {}) {
      await using stack = new AsyncDisposableStack();
      const cable = stack.use(await openCable(Number(url.port), url.hostname));
      const login = { vpn, username, password };
      const peer = stack.use(await connectSolacePeer({ url: url.href, ...login }));
      const place = `test/${newId()}`;
      // They would stay on a real broker.
      stack.defer(async () => {
        for (const [group, queue] of queuesOfSuite)
          await peer.removeQueue(groupQueue(place, group, queue));
      });
      const owned = stack.move();
      const host = `127.0.0.1:${cable.port}`;
      const common = { host, namespace: place, maxDeliveries, maxUnsettled: 64, ...login };
      return {
        broker: solaceBroker(common),
        namespace: place,
        peer,
        brokerOf: (options) => solaceBroker({ ...common, ...adapterOptions(options) }),
        cutConnections: () => cable.cut(),
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  });
});
