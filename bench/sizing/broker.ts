/**
 * The benchmark's side of a broker in a process of its own.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import type { BrokerKind, BrokerVariables, RunningBroker } from "../brokers.ts";
import { ProcessorGroup } from "./group.ts";

/** A broker, and the group that counts its processor time. */
export interface ForkedBroker extends RunningBroker {
  readonly group: ProcessorGroup;
}

/** Starts a broker that is installed. The caller disposes it. */
export async function forkBroker(kind: BrokerKind, signal: AbortSignal): Promise<ForkedBroker> {
  await using held = new AsyncDisposableStack();
  const group = held.use(new ProcessorGroup("broker"));
  const program = new URL("broker-process.ts", import.meta.url);
  const child = await group.around(() => Promise.resolve(fork(program, [kind])));
  const exited = once(child, "exit");
  held.defer(async () => {
    if (child.connected) child.disconnect();
    await exited;
  });
  const ended = exited.then(() => {
    throw new Error("the broker ended");
  });
  const [variables] = (await Promise.race([once(child, "message", { signal }), ended])) as [
    BrokerVariables,
  ];
  ended.catch(() => undefined);
  const owned = held.move();
  return {
    ...{ kind, variables, group },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
