/**
 * The victim: a call that runs beside an attack, with a secret in each of its directories.
 */
import { systemClock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { type CallParts, callTimeoutSeconds, invocationOf } from "./attack-call.ts";
import { endingOf } from "./attack-verdict.ts";

/** Time limit of the victim in seconds: the attack beside it may first wait for a sandbox. */
const victimSeconds = 3 * callTimeoutSeconds;

/** A running call. Disposing ends it. */
export interface Victim extends AsyncDisposable {
  /** Why the victim is not ready; undefined when its secrets are written. */
  readonly problem: string | undefined;
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
    signal: stopping.signal,
    waitSignal: stopping.signal,
    log,
    onStatus: () => ready.resolve(undefined),
  });
  const ended = call.then((outcome) => {
    problem = `the victim has ended: ${endingOf({ outcome })}`;
  });
  const known = Promise.race([ready.promise, ended]);
  const isKnown = await settlesWithin(known, callTimeoutSeconds * 1000, systemClock, signal);
  if (!isKnown) problem = "the victim is silent";
  return {
    get problem() {
      return problem;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("the attack is over"));
      await call;
    },
  };
}
