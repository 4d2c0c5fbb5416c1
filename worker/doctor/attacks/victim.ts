/**
 * Another call that runs while an attack does, with a secret wherever a call can have one.
 */
import { systemClock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/within.ts";
import { type CallParts, callTimeoutSeconds, invocationOf } from "./attack-call.ts";
import { endingOf } from "./attack-verdict.ts";

/** Seconds for which it runs at most: the attack beside it may first wait for a sandbox. */
const victimSeconds = 3 * callTimeoutSeconds;

/** A call that runs. Disposing ends it. */
export interface Victim extends AsyncDisposable {
  /** Why it is not there now, or undefined when everything is in its place. */
  readonly problem: string | undefined;
}

/**
 * Starts the victim and waits until everything is in its place, or will not be. Never throws.
 */
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
  if (!isKnown) problem = "the victim says nothing";
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
