/**
 * The victim: a call that runs beside an attack, with a secret in each of its directories.
 */
import type { StartKind } from "../../protocol/execution.ts";
import { systemClock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { type CallParts, callTimeoutSeconds, invocationOf } from "./attack-call.ts";
import { endingOf, startSeen } from "./attack-verdict.ts";

/** Time limit of the victim in seconds: the attack beside it may first wait for a sandbox. */
const victimSeconds = 3 * callTimeoutSeconds;

/** A running call. Disposing ends it. */
export interface Victim extends AsyncDisposable {
  /** Why the victim is not ready; undefined when its secrets are written. */
  readonly problem: string | undefined;
  /** Ends it. Start mode of its sandbox; undefined when none ran. */
  end(): Promise<StartKind | undefined>;
}

/** Starts the victim, and waits until it is ready or has a problem. Never throws. */
export async function startVictim(
  { invoker, log }: Pick<CallParts, "invoker" | "log">,
  toolName: string,
  token: string,
  signal: AbortSignal,
): Promise<Victim> {
  const stopping = new AbortController();
  const ready = Promise.withResolvers<undefined>();
  let problem: string | undefined;
  const call = invoker.invoke(invocationOf(toolName, { token }, victimSeconds), {
    // A call that its caller cancels has a report of its sandbox.
    signal,
    waitSignal: signal,
    cancelSignal: stopping.signal,
    log,
    onStatus: () => ready.resolve(undefined),
  });
  const ended = call.then((outcome) => {
    problem = `the victim has ended: ${endingOf({ outcome })}`;
  });
  const known = Promise.race([ready.promise, ended]);
  const isKnown = await settlesWithin(known, callTimeoutSeconds * 1000, systemClock, signal);
  if (!isKnown) problem = "the victim is silent";
  const end = async (): Promise<StartKind | undefined> => {
    stopping.abort(new Error("the attack is over"));
    return startSeen({ outcome: await call });
  };
  return {
    get problem() {
      return problem;
    },
    end,
    async [Symbol.asyncDispose]() {
      await end();
    },
  };
}
