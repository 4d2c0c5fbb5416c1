/**
 * Options of the Solace adapter for tests.
 */
import type { Broker } from "../../../worker/broker/broker.ts";
import { createSolaceBroker } from "../../../worker/broker/solace/broker.ts";
import { type QueueGiven, placementOf } from "./rabbitmq-options.ts";

type SolaceBrokerOptions = Parameters<typeof createSolaceBroker>[0];

/** What every test has to say of a Solace broker. */
export type SolaceGiven = Partial<SolaceBrokerOptions> &
  Pick<SolaceBrokerOptions, "host" | "namespace"> &
  QueueGiven;

/** The adapter for an operator who sets nothing but what is given. */
export function solaceBroker(all: SolaceGiven): Broker {
  const { maxUnsettled = 8, queueOf: _queueOf, foreignTools: _foreignTools, ...given } = all;
  return createSolaceBroker({
    vpn: "default",
    username: undefined,
    password: undefined,
    oauthToken: undefined,
    oauthTokenFile: undefined,
    tls: noTlsFiles,
    workerId: "worker",
    group: "default",
    queues: new Map([["default", maxUnsettled]]),
    placement: placementOf(all),
    statusDelivery: "persistent",
    maxDeliveries: 5,
    log: { info: () => {}, warn: () => {} },
    ...given,
  });
}

/** Of an operator without any. */
export const noTlsFiles = {
  trustStorePath: undefined,
  clientCertPath: undefined,
  clientKeyPath: undefined,
  clientKeyPassphrase: undefined,
};
