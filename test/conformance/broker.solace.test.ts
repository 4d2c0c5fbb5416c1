/**
 * The broker contract, kept by the Solace adapter against the broker of the harness, and against one in another process: the
 * one that SOLACE_TEST_URL (`tcp://host:port`), SOLACE_TEST_VPN, SOLACE_TEST_USERNAME and SOLACE_TEST_PASSWORD name, which
 * may be a real one, else `harness smf-broker`. SOLACE_TEST_COUNTS_DELIVERIES is `true` where queues that clients make have
 * `deliveryCountEnabled`.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { startSmfBroker } from "../../harness/fakes/solace/broker.ts";
import { newId } from "../../worker/support/ids.ts";
import { CliProcess } from "../integration/harness/cli-process.ts";
import { openCable } from "../support/rabbitmq-proxy.ts";
import { solaceBroker } from "../support/solace-options.ts";
import { describeBroker } from "./broker.ts";
import { connectSolacePeer } from "./solace-peer.ts";

const capabilities = {
  shares: true,
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
    // Where no call may wait behind a busy worker, the queue has to say so: the library knows no such limit.
    if (maxUnsettled !== undefined) {
      const maxUnsettledPerFlow = maxUnsettled;
      server.createQueue(`${namespace}/q/sandbox/tool/echo`, {
        accessType: "non-exclusive",
        maxUnsettledPerFlow,
      });
    }
    const cable = stack.use(await openCable(server.port));
    const peer = stack.use(await connectSolacePeer({ url: server.url }));
    const owned = stack.move();
    return {
      broker: solaceBroker({
        host: `127.0.0.1:${cable.port}`,
        namespace,
        maxDeliveries,
        maxUnsettled: maxUnsettled ?? 64,
      }),
      namespace,
      peer,
      cutConnections: () => cable.cut(),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  },
});

const {
  SOLACE_TEST_URL: givenUrl,
  SOLACE_TEST_VPN: vpn = "default",
  SOLACE_TEST_USERNAME: username = "default",
  SOLACE_TEST_PASSWORD: password = "default",
  SOLACE_TEST_COUNTS_DELIVERIES: counts = givenUrl === undefined ? "true" : "false",
} = process.env;

/** Tools of the suite, whose queues would stay on a real broker. */
const tools = ["a", "b", "echo", "echo2", "gone", "kept", "late", "never-served", "other"];

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
    // Queues that the worker makes have no limit of their own, and few brokers are set to count deliveries, or to tell who
    // listens.
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
      stack.defer(async () => {
        for (const tool of tools) await peer.removeQueue(`${place}/q/sandbox/tool/${tool}`);
      });
      const owned = stack.move();
      const host = `127.0.0.1:${cable.port}`;
      return {
        broker: solaceBroker({
          host,
          namespace: place,
          maxDeliveries,
          maxUnsettled: 64,
          ...login,
        }),
        namespace: place,
        peer,
        cutConnections: () => cable.cut(),
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  });
});
