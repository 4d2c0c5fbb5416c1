/**
 * The brokers of a benchmark that workers and agents connect to.
 */
import { startDevBroker } from "../harness/dev-broker/dev-broker.ts";
import { startSmfBroker } from "../harness/fakes/solace/broker.ts";
import { rabbitmqProblem, startRabbitMQ } from "../test/support/brokers/rabbitmq.ts";

/** A kind, in the words of `--broker`. */
export type BrokerKind = (typeof brokerKinds)[number];

const brokerKinds = ["dev", "amqp", "solace"] as const;

/** A worker's variables for a broker. */
export type BrokerVariables = Readonly<Record<string, string>>;

/**
 * A broker that runs: the DevBroker and the SMF broker in this process, RabbitMQ in one of its own.
 * Its owner disposes it.
 */
export interface RunningBroker extends AsyncDisposable {
  readonly kind: BrokerKind;
  readonly variables: BrokerVariables;
}

/** Those by which workers share work, as far as they are installed. */
export const sharingBrokers: readonly BrokerKind[] = [
  ...(rabbitmqProblem() === undefined ? (["amqp"] as const) : []),
  "solace",
];

/** The kind that an option names. Throws for another word. */
export function brokerKindOf(word: string | undefined): BrokerKind {
  const kind = brokerKinds.find((each) => each === word);
  if (kind === undefined) throw new Error(`--broker: one of ${brokerKinds.join(", ")}`);
  return kind;
}

/** Starts a broker that is installed. */
export async function startBroker(kind: BrokerKind): Promise<RunningBroker> {
  await using stack = new AsyncDisposableStack();
  const variables = await start(kind, stack);
  const owned = stack.move();
  return { kind, variables, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function start(kind: BrokerKind, stack: AsyncDisposableStack): Promise<BrokerVariables> {
  switch (kind) {
    case "dev": {
      const { host, port } = stack.use(await startDevBroker());
      return { DEV_BROKER_HOST: host, DEV_BROKER_PORT: String(port) };
    }
    case "amqp":
      return { AMQP_URL: stack.use(await startRabbitMQ()).url };
    case "solace":
      return { SOLACE_HOST: stack.use(await startSmfBroker()).url };
  }
}
