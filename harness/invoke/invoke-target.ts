/**
 * The broker that `harness invoke` calls at: the one that the command line names, one that runs
 * here, or its own.
 */
import { BrokerError } from "../../worker/broker/broker.ts";
import { Agent, defaultAgentName, newInbox } from "../agent.ts";
import { openCommandBroker } from "../options/broker-option.ts";
import { CommandError, type Context } from "../context.ts";
import {
  type EmbeddedBroker,
  PortTakenError,
  startEmbeddedBroker,
} from "../dev-broker/embedded-broker.ts";
import { reachable } from "../worker/worker-command.ts";

/** Milliseconds that whoever listens on the port may take to show that it is a DevBroker. */
const recognitionMs = 5_000;

/** What the command line says of it. */
export interface TargetOptions {
  readonly namespace: string;
  /** A running broker, as `chooseBroker` reads it. */
  readonly broker?: string;
  /** Where a DevBroker is looked for, and started when there is none. */
  readonly host: string;
  readonly port: number;
}

/** A broker, and how to connect to it. */
export interface InvokeTarget {
  /** Ours, or undefined for one that ran already. */
  readonly embedded: EmbeddedBroker | undefined;
  /** Whether it was found and not named. */
  readonly isFound: boolean;
  /** May be called once. Throws BrokerError, CommandError, or the signal's reason. */
  connect(): Promise<Agent>;
}

/** Chooses it. A broker of ours is the stack's then. Throws CommandError when it cannot listen. */
export async function openTarget(
  options: TargetOptions,
  stack: AsyncDisposableStack,
  context: Context,
): Promise<InvokeTarget> {
  const { namespace, host, port } = options;
  const named = options.broker;
  if (named !== undefined) {
    const connect = async (): Promise<Agent> => {
      const { broker } = await openCommandBroker(
        named,
        { namespace, name: defaultAgentName },
        context,
      );
      return Agent.on(broker, { namespace, inbox: newInbox() }, context.signal);
    };
    return { embedded: undefined, isFound: false, connect };
  }
  try {
    const embedded = stack.use(await startEmbeddedBroker(host, port));
    const address = { host: embedded.broker.host, port: embedded.broker.port, namespace };
    const connect = (): Promise<Agent> => Agent.connect(address, context.signal);
    return { embedded, isFound: false, connect };
  } catch (error) {
    if (!(error instanceof PortTakenError)) throw error;
    return { embedded: undefined, isFound: true, connect: () => connectFound(options, context) };
  }
}

async function connectFound(
  { namespace, host, port }: TargetOptions,
  { signal, err }: Context,
): Promise<Agent> {
  const address = { host: reachable(host), port };
  try {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(recognitionMs)]);
    const agent = await Agent.connect({ ...address, namespace, inbox: newInbox() }, patience);
    err.line(`Calling at the DevBroker that runs on ${address.host}:${port}.`);
    return agent;
  } catch (error) {
    signal.throwIfAborted();
    const isForeign = error instanceof BrokerError || (error as Error).name === "TimeoutError";
    if (!isForeign) throw error;
    throw new CommandError(
      `${address.host}:${port} is taken, and not by a DevBroker; --port 0 takes a free port, --broker names another broker`,
      { cause: error },
    );
  }
}
