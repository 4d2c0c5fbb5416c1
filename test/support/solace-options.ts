/**
 * Options of the Solace adapter for tests.
 */
import type { Broker } from "../../worker/broker/broker.ts";
import { createSolaceBroker } from "../../worker/broker/solace/broker.ts";

type SolaceBrokerOptions = Parameters<typeof createSolaceBroker>[0];

/** What every test has to say of a Solace broker. */
export type SolaceGiven = Partial<SolaceBrokerOptions> &
  Pick<SolaceBrokerOptions, "host" | "namespace"> & {
    /** The limit of the default queue. */
    readonly maxUnsettled?: number;
  };

/** The adapter for an operator who sets nothing but what is given. */
export function solaceBroker({ maxUnsettled = 8, ...given }: SolaceGiven): Broker {
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
    queueOf: () => "default",
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
